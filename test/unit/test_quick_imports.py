"""Imports cost little: code of data classes is kept, operations are defined when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from support import run
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import i32
from xdsl.dialects.test import TestOp
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import PyRDLOpDefinitionError, VerifyException

from mlirhlo.importing.data_classes import Codes
from mlirhlo.importing.operations import deferred

CLASS = "def f(a):\n return a + 1"


def test_code_is_kept_for_the_next_process(tmp_path: Path) -> None:
    path = str(tmp_path / "data.codes")
    first = Codes(path)
    code = first.code(CLASS)
    first.write()
    again = Codes(path)
    assert again.code(CLASS) == code
    assert not again.is_new
    local: dict[str, object] = {}
    again.run(CLASS, {"__name__": "mlirhlo.some"}, local)
    function = cast("Callable[[int], int]", local["f"])
    assert function(1) == 2


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xf3", b"i\x01\x00\x00\x00"])
def test_a_damaged_file_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.codes").write_bytes(content)
    codes = Codes(str(tmp_path / "data.codes"))
    assert codes.code(CLASS) == compile(CLASS, "<string>", "exec")


def test_what_two_processes_write_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "data.codes")
    one, other = Codes(path), Codes(path)
    one.code("a = 1")
    other.code("b = 2")
    one.write()
    other.write()
    assert Codes(path).known == {**one.known, **other.known}


def test_classes_of_other_packages_are_not_kept(tmp_path: Path) -> None:
    codes = Codes(str(tmp_path / "data.codes"))
    codes.run(CLASS, {"__name__": "elsewhere"}, {})
    assert not codes.is_new


class _Base(IRDLOperation):
    traits = traits_def(Pure())


class _Sum(_Base):
    name = "test.sum"
    lhs = operand_def(i32)
    result = result_def(i32)
    scale = opt_prop_def(type(i32))
    assembly_format = "$lhs attr-dict `:` type($result)"
    irdl_options = (ParsePropInAttrDict(),)

    def verify_(self) -> None:
        if self.scale is not None:
            raise VerifyException("no scale")


def _sum(name: str) -> type[_Sum]:
    """A class of ours, new each time."""
    written = {k: v for k, v in vars(_Sum).items() if k not in ("__dict__", "__weakref__")}
    return cast(type[_Sum], type(name, (_Base,), {**written, "__module__": "mlirhlo.test"}))


def test_a_deferred_operation_is_as_a_defined_one() -> None:
    late, early = deferred(_sum("Late")), irdl_op_definition(_sum("Early"))
    assert "irdl" not in repr(vars(late)["lhs"])
    operand = TestOp(result_types=[i32]).results[0]
    for cls in (late, early):
        op = cls.create(operands=[operand], result_types=[i32])
        assert op.lhs is operand
        assert op.has_trait(Pure)
        op.verify()
        op.scale = i32
        with pytest.raises(VerifyException, match="no scale"):
            op.verify()
    assert late.get_irdl_definition().properties == early.get_irdl_definition().properties
    assert str(late.get_irdl_definition()) == str(early.get_irdl_definition())


def test_each_way_to_a_definition_builds_it() -> None:
    for name in ("lhs", "scale", "traits", "parse", "print", "verify_", "get_irdl_definition"):
        cls = deferred(_sum("Late"))
        assert type(vars(cls)[name]).__name__ == "_Deferred"
        getattr(cls, name, None)
        assert type(vars(cls)["verify_"]).__name__ == "function", name


def test_what_is_wrong_with_a_definition_is_said_at_each_use() -> None:
    cls = _sum("Wrong")
    cls.assembly_format = "$nothing"
    deferred(cls)
    for _ in range(2):
        with pytest.raises(PyRDLOpDefinitionError, match="assembly format"):
            cls.get_irdl_definition()


def test_operations_of_others_are_defined_at_once() -> None:
    written = _sum("Other")
    written.__module__ = "elsewhere"
    assert type(vars(deferred(written))["verify_"]).__name__ == "function"


def test_threads_see_a_definition_whole() -> None:
    operand = TestOp(result_types=[i32]).results[0]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            cls = deferred(_sum("Late"))

            def use(_: int, cls: type[_Sum] = cls) -> None:
                cls.create(operands=[operand], result_types=[i32]).verify()

            list(threads.map(use, range(4)))


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("import mlirhlo.dialects.llvm", "function"),  # not under `ALONE`
        ("import mlirhlo; mlirhlo.parse('f32[] negate(f32[] x)')", "function"),  # nothing of arith
        (
            "from mlirhlo.importing import ALONE\nwith ALONE: import mlirhlo.dialects.arith",
            "_Deferred",
        ),
        (
            "from mlirhlo.cli.report import ALONE; ALONE.in_tool(); import mlirhlo.dialects",
            "_Deferred",
        ),
        ("pass", "function"),
    ],
)
def test_operations_are_deferred_where_imports_are_ours(program: str, kind: str) -> None:
    shown = "from xdsl.dialects import arith; print(type(vars(arith.AddiOp)['verify_']).__name__)"
    assert run(sys.executable, "-c", f"{program}\n{shown}").out == f"{kind}\n"


def test_definitions_are_there_when_they_are_needed() -> None:
    assert arith.AddiOp.get_irdl_definition().name == "arith.addi"
    assert llvm.AddOp.get_irdl_definition().name == "llvm.add"


UNTOUCHED = """
import sys, numpy, xdsl.builder, xdsl.context, xdsl.irdl, xdsl.parser, xdsl.pattern_rewriter, xdsl.printer, xdsl.traits
from xdsl.dialects import arith, builtin, llvm
from types import ModuleType

def attributes(modules):
    for module in modules:
        for name, value in vars(module).items():
            yield (module.__name__, name), value
            if isinstance(value, type) and value.__module__.startswith("xdsl."):
                for key, member in vars(value).items():
                    yield (value.__module__, value.__qualname__, key), member

modules = [m for name, m in sys.modules.items() if name.partition(".")[0] == "xdsl"]
before = dict(attributes(modules))
import mlirhlo
run = mlirhlo.compile(mlirhlo.parse("f32[64] tanh(f32[64] x)"))
run(numpy.ones(64, numpy.float32))
after = dict(attributes(modules))
for key in sorted(before.keys() | after.keys()):
    if before.get(key) is not after.get(key) and not isinstance(after.get(key), ModuleType):
        print(*key)
"""


def test_xdsl_stays_what_it_is() -> None:
    """Parsing, compiling and running change no function, class or method of xDSL but the hashes of three classes.

    Those are by identity before and after (`dialects/quick.py`).
    """
    done = run(sys.executable, "-c", UNTOUCHED)
    assert not done.err
    hashed = ("Operation", "SSAValue")
    expected = [f"xdsl.ir.core {name} __hash__" for name in hashed]
    assert done.out.splitlines() == [*expected, "xdsl.irdl.operations IRDLOperation __hash__"]


def test_a_small_file_needs_few_modules() -> None:
    """numpy, Lark, llvmlite, passes and xDSL's parser are for those who use them."""
    program = (
        "import sys; from mlirhlo.cli.hlo_opt import main; main(['-', '-o', '/dev/null']);"
        "print(*[m for m in ('numpy', 'lark', 'llvmlite', 'xdsl.parser', 'xdsl.passes', 'logging')"
        " if m in sys.modules], len(sys.modules))"
    )
    done = run(sys.executable, "-c", program, stdin="f32[2] negate(f32[2] x)")
    *loaded, count = done.out.split()
    assert not loaded
    assert int(count) < 300
