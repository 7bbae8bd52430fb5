"""Against jaxlib: its MLIR takes our programs, and its translator makes the same ones."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from oracle import ask, xla
from unit.corpus import repository_texts
from unit.rewrites.hlo_to_stablehlo.programs_in_hlo import LINES, module
from unit.rewrites.hlo_to_stablehlo.test_one_op import INPUTS
from xdsl.ir import Block, Operation, SSAValue
from xla_execution import Refusal, XlaCpu

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.formats.stablehlo import parse_module as parse_stablehlo
from mlirhlo.formats.stablehlo import print_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK

pytestmark = pytest.mark.oracle

TEXTS = {
    **{name: module(name) for name in LINES},
    **{name: text for name, text in repository_texts() if len(text) < 40_000},
}


def translated(text: str) -> str:
    """The StableHLO that jaxlib makes of an HLO text."""
    from jaxlib import _jax, xla_client  # type: ignore[attr-defined]

    proto = xla().hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return str(_jax.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(proto)))


def verified(text: str) -> str:
    """`ok` when MLIR reads a program and finds it sound."""
    from mlir_oracle import parse

    return "ok" if parse(text).operation.verify() else "unsound"


def lowered(text: str) -> str:
    """The HLO that jaxlib makes of a StableHLO program."""
    from jaxlib import _jax  # type: ignore[attr-defined]

    return str(_jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text(True))


def ours(text: str) -> str:
    return print_module(convert_to_stablehlo(parse_module(text)))


def test_mlir_takes_our_programs() -> None:
    """Parsed and verified by the dialect's own verifiers."""
    programs = {name: ours(text) for name, text in TEXTS.items()}
    answers = dict(zip(programs, ask(list(programs.values()), verified), strict=True))
    assert {n: a for n, a in answers.items() if a != "ok"} == {}


class Print:
    """The meaning of a program as a hash: names, order and unused functions do not count."""

    SAME = {
        "mhlo.erf": "chlo.erf",
        "mhlo.topk": "chlo.top_k",
        "stablehlo.dot": "stablehlo.dot_general",
    }
    DROPPED = {"result_layout", "xla_shape", "source_layout", MARK}
    DEFAULTS = {
        "backend_config": '""', "output_operand_aliases": "[]", "called_computations": "[]",
        "is_stable": "false", "lower": "false", "indices_are_sorted": "false",
    }  # fmt: skip

    def __init__(self, text: str) -> None:
        module = parse_stablehlo(text)
        self.functions = {
            op.properties["sym_name"].data: op
            for op in module.ops
            if op.name == "func.func"  # type: ignore[attr-defined]
        }
        self.values: dict[SSAValue, str] = {}

    def function(self, name: str) -> str:
        return self.block(self.functions[name].regions[0].block, "f")

    def block(self, block: Block, path: str) -> str:
        for index, argument in enumerate(block.args):
            self.values[argument] = f"{path}.{index}:{argument.type}"
        ends: list[str] = []
        for op in block.ops:
            found = hashlib.md5(self.text(op, path).encode()).hexdigest()
            for index, result in enumerate(op.results):
                self.values[result] = f"{found}#{index}"
            if not op.results or op.name == "stablehlo.custom_call":
                ends.append(found)
        return hashlib.md5(str(sorted(ends)).encode()).hexdigest()

    def text(self, op: Operation, path: str) -> str:
        properties = {
            key: str(value)
            for key, value in op.properties.items()
            if self.DEFAULTS.get(key) != str(value) and "DEFAULT" not in str(value)
        }
        called: Any = op.properties.get("callee")
        if called is not None:
            properties["callee"] = self.function(called.root_reference.data)
        if op.name == "stablehlo.dot":
            rank = len(op.operands[0].type.shape.data)  # type: ignore[attr-defined]
            properties["dot_dimension_numbers"] = (
                f"#stablehlo.dot<lhs_contracting_dimensions = [{rank - 1}],"
                " rhs_contracting_dimensions = [0]>"
            )
        attributes = {k: str(v) for k, v in op.attributes.items() if k not in self.DROPPED}
        parts: list[Any] = [
            self.SAME.get(op.name, op.name),
            sorted(properties.items()),
            sorted(attributes.items()),
            [self.values[value] for value in op.operands],
            [str(result.type) for result in op.results],
        ]
        parts += [self.block(region.block, path + "r") for region in op.regions]
        return str(parts)


def test_as_jaxlib_translates() -> None:
    """The same program, where jaxlib makes one of StableHLO's ops only."""
    # Fusions stay fusions there, elided constants get a value, converts stay folded into other ops,
    # and replica groups by mesh axes keep the mesh, which we write out.
    other = ("fusion", "{...}", "mesh[", "replica_groups=mesh")
    names = [
        name
        for name, text in TEXTS.items()
        if not any(part in text for part in other) and not name.startswith(("mixed-", "mulhi"))
    ]
    answers = dict(zip(names, ask([TEXTS[n] for n in names], translated), strict=True))
    compared = 0
    different: list[str] = []
    for name, answer in answers.items():
        if answer.startswith(("ERROR", "CRASH")) or "mhlo.copy" in answer:
            continue
        own_ops = ("mhlo.a", "mhlo.b", "mhlo.c", "mhlo.s", "mhlo.e", "mhlo.topk", "mhlo.mulhi")
        if any(f" {op}" in answer or f'"{op}' in answer for op in own_ops) or "async" in answer:
            continue
        compared += 1
        if Print(answer).function("main") != Print(ours(TEXTS[name])).function("main"):
            different.append(name)
    assert different == []
    assert compared > 50


@pytest.mark.slow
def test_xla_computes_the_same() -> None:
    """XLA:CPU runs our programs to the results of the HLO they were made of."""
    machine = XlaCpu()
    compared = 0
    wrong: list[str] = []
    names = [n for n in LINES if "mlirhlo.hlo." not in ours(module(n))][::3]
    for name, answer in zip(names, ask([ours(module(n)) for n in names], lowered), strict=True):
        wanted = machine.run(module(name), INPUTS)
        got = machine.run(answer, INPUTS)
        if isinstance(wanted, Refusal) or isinstance(got, Refusal):
            continue
        compared += 1
        if [a.tobytes() for a in wanted] != [a.tobytes() for a in got]:
            wrong.append(name)
    machine.stop()
    assert wrong == []
    assert compared > 15
