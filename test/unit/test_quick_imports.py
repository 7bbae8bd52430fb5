"""Imports cost little: code of data classes is kept, operations are defined when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from support import run
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerType, StringAttr, i32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, TypedAttribute
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import PyRDLOpDefinitionError, VerifyException

from mlirhlo.importing.data_classes import Codes
from mlirhlo.importing.operations import deferred, deferred_attribute

CLASS = "def f(a):\n return a + 1"


def test_code_is_kept_for_the_next_process(tmp_path: Path) -> None:
    path = str(tmp_path / "data.codes")
    first = Codes(path)
    code = first.code(CLASS)
    first.write()
    again = Codes(path)
    assert again.code(CLASS) == code
    assert not again.added
    local: dict[str, object] = {}
    again.run(CLASS, {"__name__": "mlirhlo.some"}, local)
    function = cast("Callable[[int], int]", local["f"])
    assert function(1) == 2


def test_a_cut_file_is_as_none(tmp_path: Path) -> None:
    path = tmp_path / "data.codes"
    codes = Codes(str(path))
    codes.code(CLASS)
    codes.write()
    path.write_bytes(path.read_bytes()[:-1])
    assert not Codes(str(path)).stored[0]


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
    assert not Codes(path).added
    assert len(Codes(path).stored[0]) == len({**one.added, **other.added}) == 2
    third = Codes(path)
    assert third.code("a = 1") == compile("a = 1", "<string>", "exec")
    assert third.code("b = 2") == compile("b = 2", "<string>", "exec")
    assert not third.added


def test_classes_of_other_packages_are_not_kept(tmp_path: Path) -> None:
    codes = Codes(str(tmp_path / "data.codes"))
    codes.run(CLASS, {"__name__": "elsewhere"}, {})
    assert not codes.added


PATTERNS = r"""
import re
found = [
    re.compile(r"(?P<key>[a-z]+)=(\d+)|x", re.I | re.S), re.compile(rb"[\x80-\xff]+?(?=a)"), re.compile("ä|[^b]", re.A),
    re.compile(r"(a)(?P<b>b)?(?(b)c|d)", re.X),
]
"""


def test_patterns_of_modules_are_kept(tmp_path: Path) -> None:
    """Both processes find what `re` finds; the second compiles nothing."""
    (tmp_path / "patterns.py").write_text(PATTERNS)
    program = f"""
import re, sys
sys.path.insert(0, {str(tmp_path)!r})
from mlirhlo.importing import data_classes
codes = data_classes.Codes({str(tmp_path / "data.codes")!r})
re._compiler.compile = codes.pattern
import patterns
re._compiler.compile = data_classes._compile_pattern
for kept in patterns.found:
    re.purge()
    own = re.compile(kept.pattern, kept.flags)
    assert (own, own.groups, own.groupindex) == (kept, kept.groups, kept.groupindex), kept
    for text in ("Ab=12x", "abcad", "xx", "ä", "b"):
        text = text if isinstance(kept.pattern, str) else text.encode("latin-1") + b"a"
        for a, b in zip(own.finditer(text), kept.finditer(text), strict=True):
            assert (a.span(), a.groupdict(), a.lastgroup) == (b.span(), b.groupdict(), b.lastgroup)
print(len(codes.added))
codes.write()
"""
    counts = [run(sys.executable, "-B", "-c", program).out for _ in range(2)]
    assert counts == ["4\n", "0\n"]


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


class _Pair(TypedAttribute):
    name = "test.pair"
    label: StringAttr
    type: IntegerType = param_def(EqAttrConstraint(i32))

    @staticmethod
    def parse_with_type(parser: AttrParser, type: Attribute) -> TypedAttribute:
        raise NotImplementedError

    def print_without_type(self, printer: Printer) -> None:
        raise NotImplementedError


def _pair(decorate: Callable[[type], type]) -> Any:
    """A class of ours, new each time."""
    written = {k: v for k, v in vars(_Pair).items() if k not in ("__dict__", "__weakref__")}
    sys.modules["mlirhlo.pairs"] = sys.modules[__name__]  # where its annotations are evaluated
    return decorate(type("Pair", (TypedAttribute,), {**written, "__module__": "mlirhlo.pairs"}))


def test_a_deferred_attribute_is_as_a_defined_one() -> None:
    late, early = _pair(deferred_attribute), _pair(irdl_attr_definition)
    for cls in (late, early):
        pair = cls(StringAttr("a"), i32)
        assert pair.get_type() is i32
        assert pair == cls.new([StringAttr("a"), i32])
        assert hash(pair) == hash(cls.new([StringAttr("a"), i32]))
        assert cls.get_type_index() == 1
        with pytest.raises(VerifyException, match="'type' does not verify"):
            cls(StringAttr("a"), i64)
        with pytest.raises(TypeError, match="final"):
            type("Further", (cls,), {})
    assert str(late.get_irdl_definition()) == str(early.get_irdl_definition())


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
