"""Tests written into StableHLO programs: running functions that check their own values.

A function is cut where it runs others in parallel; what lies between is converted to HLO and run, and the
values that checks look at are compared here. So every backend that runs HLO runs these tests too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.analysis.stablehlo.places import place_of
from mlirhlo.diagnostics import Diagnostic, error
from mlirhlo.dialects.check import check_name
from mlirhlo.dialects.stablehlo.elements import DenseAttr, array_of
from mlirhlo.interp.closeness import MOST_ULPS, TOLERANCE, Array, Bounds, disagreement
from mlirhlo.interp.engine import Interpreter
from mlirhlo.interp.machine import Machine
from mlirhlo.rewrites.stablehlo_refine_shapes import canonicalize_dynamism
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

Runner: TypeAlias = "Callable[[ModuleOp, Sequence[Any]], Sequence[Any]]"
"""Runs an HLO module on arrays; the parts of its result."""


@dataclass(slots=True)
class CheckReport:
    """How the checks of a program ended."""

    functions: list[str] = field(default_factory=list[str])
    passed: int = 0
    failures: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @property
    def total(self) -> int:
        """All checks made."""
        return self.passed + len(self.failures)


def test_functions(module: ModuleOp) -> list[FuncOp]:
    """Functions without arguments that check something, in their order."""
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and op.body.blocks
        and not op.body.block.args
        and any(_is_special(inner) for inner in op.body.block.ops)
    ]


def run_checks(
    module: ModuleOp, runner: Runner | None = None, file: str = "<module>"
) -> CheckReport:
    """Runs every test function of a StableHLO program.

    `runner`: what runs the pieces; the interpreter unless given. Raises what converting and running
    raise, HLO0361 for a program that cannot be cut.
    """
    report = CheckReport()
    tests = test_functions(module)
    for function in tests:
        report.functions.append(function.sym_name.data)
        _Test(module, tests, function, runner or interpret, file, report).run()
    return report


def interpret(module: ModuleOp, arguments: Sequence[Any]) -> Sequence[Any]:
    """The parts of a module's result, on the interpreter."""
    return cast("Sequence[Any]", Interpreter(module).run(arguments))


_SPECIAL = ("interpreter.run_parallel", "interpreter.print", "interpreter.probe")


def _is_special(op: Operation) -> bool:
    return check_name(op) is not None or op.name in _SPECIAL


class _Test:
    """One function on its way."""

    def __init__(
        self,
        module: ModuleOp,
        tests: Sequence[FuncOp],
        function: FuncOp,
        runner: Runner,
        file: str,
        report: CheckReport,
    ) -> None:
        self.module, self.tests, self.function = module, tests, function
        self.runner, self.file, self.report = runner, file, report
        self.values: dict[SSAValue, Any] = {}
        """What is known."""
        self.same: dict[SSAValue, SSAValue] = {}
        """Results of probes and prints: their operands."""
        self.probes: dict[str, list[Any]] = {}

    def run(self) -> None:
        ops = [op for op in self.function.body.block.ops if not isinstance(op, ReturnOp)]
        for op in ops:
            if op.name in ("interpreter.print", "interpreter.probe"):
                self.same[op.results[0]] = self._source(op.operands[0])
        start = 0
        for at, op in enumerate(ops):
            if op.name == "interpreter.run_parallel":
                self._segment(ops[start:at])
                self._parallel(op)
                start = at + 1
        self._segment(ops[start:])
        for op in ops:
            self._look(op)

    def _source(self, value: SSAValue) -> SSAValue:
        while value in self.same:
            value = self.same[value]
        return value

    def _segment(self, ops: Sequence[Operation]) -> None:
        """Runs the ordinary ops among `ops` for what all others look at."""
        ordinary = [op for op in ops if not _is_special(op)]
        made = {r: op for op in ordinary for r in op.results}
        inside = set(ordinary)
        wanted: dict[SSAValue, None] = {}
        for op in self.function.body.block.ops:
            if isinstance(op, ReturnOp) or (op in inside and not _is_special(op)):
                continue
            for operand in _used(op):
                source = self._source(operand)
                if source in made:
                    wanted[source] = None
        if not wanted:
            return
        needed = {s for op in ordinary for o in _used(op) if (s := self._source(o)) not in made}
        given = [v for v in self.values if v in needed]
        block = Block(arg_types=[v.type for v in given])
        mapped: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
        for result, source in self.same.items():
            final = self._source(source)
            if final in mapped:
                mapped[result] = mapped[final]
        for op in ordinary:
            block.add_op(op.clone(mapped))
            for result, source in self.same.items():
                final = self._source(source)
                if final in mapped:
                    mapped[result] = mapped[final]
        block.add_op(ReturnOp(*[mapped[v] for v in wanted]))
        main = FuncOp(
            "main", ([v.type for v in given], [v.type for v in wanted]), Region(block), "public"
        )
        results = self._run(main, [self.values[v] for v in given])
        self.values.update(zip(wanted, results, strict=True))

    def _program(self, main: FuncOp) -> ModuleOp:
        """A module of `main` and all functions it may call."""
        others: list[Operation] = []
        for op in self.module.ops:
            if op in self.tests or (isinstance(op, FuncOp) and op.sym_name.data == "main"):
                continue
            copy = op.clone()
            if isinstance(copy, FuncOp):
                copy.sym_visibility = StringAttr("private")
            others.append(copy)
        return ModuleOp([main, *others], dict(self.module.attributes))

    def _run(self, main: FuncOp, arguments: Sequence[Any]) -> Sequence[Any]:
        return self.runner(_as_hlo(self._program(main)), arguments)

    def _named(self, name: str) -> FuncOp:
        for op in self.module.ops:
            if isinstance(op, FuncOp) and op.sym_name.data == name:
                copy = op.clone()
                copy.sym_name = StringAttr("main")
                copy.sym_visibility = StringAttr("public")
                return copy
        raise error("HLO0361", f"no function is called @{name}")

    def _parallel(self, op: Operation) -> None:
        """Runs the functions of a grid on simulated devices."""
        grid = [
            [_symbol(name) for name in cast("ArrayAttr[Attribute]", row)]
            for row in cast("ArrayAttr[Attribute]", op.properties["programs"])
        ]
        machine = Machine(len(grid), len(grid[0]))
        mains = {name: self._named(name) for row in grid for name in row}
        counts = {name: len(f.function_type.inputs) for name, f in mains.items()}
        programs = {
            name: Interpreter(_as_hlo(self._program(f)), machine) for name, f in mains.items()
        }
        given = iter([self.values[self._source(v)] for v in op.operands])
        inputs = [[next(given) for _ in range(counts[name])] for row in grid for name in row]
        for feed in cast("ArrayAttr[Attribute]", op.properties.get("infeed", ArrayAttr([]))):
            value = self._run(self._named(_symbol(feed)), ())
            for device in range(machine.device_count):
                replica, partition = machine.place(device)
                fed = value[0] if len(value) == 1 else tuple(value)
                machine.feed(fed, replica=replica, partition=partition)

        def program(replica: int, partition: int) -> Any:
            arguments = inputs[machine.device(replica, partition)]
            interpreter = programs[grid[replica][partition]]
            return interpreter.run(arguments, replica=replica, partition=partition)

        results = [part for value in machine.run_devices(program) for part in value]
        if len(results) != len(op.results):
            raise error(
                "HLO0361",
                f"the programs give {len(results)} values, run_parallel has {len(op.results)}",
            )
        self.values.update(zip(op.results, results, strict=True))

    def _look(self, op: Operation) -> None:
        """Prints, probes and checks, once everything is known."""
        name = check_name(op)
        if name is not None:
            problem = self._check(op, name)
            if problem is None:
                self.report.passed += 1
            else:
                place = place_of(op, None, None, self.file)
                self.report.failures.append(Diagnostic("HLO0360", problem, place))
        elif op.name == "interpreter.probe":
            key = cast(StringAttr, op.properties["probe_id"]).data
            self.probes.setdefault(key, []).append(self._value(op.operands[0]))
        elif op.name == "interpreter.print":
            import sys

            text = np.array2string(np.asarray(self._value(op.operands[0])), threshold=1000)
            sys.stdout.write(f"{op.operands[0].type} {text}\n")

    def _value(self, value: SSAValue) -> Any:
        return self.values[self._source(value)]

    def _check(self, op: Operation, name: str) -> str | None:
        """What is wrong, if anything."""
        actual = self._value(op.operands[0])
        if name == "expect_serialized_eq":
            key = _text(op, "probe_id")
            at = max(int(_number(op, "iteration", _number(op, "iter", 0) + 1)), 1)
            seen = self.probes.get(key, [])
            if len(seen) < at:
                return f'the probe "{key}" has seen {len(seen)} values, not {at}'
            expected = seen[at - 1]
        elif len(op.operands) > 1:
            expected = self._value(op.operands[1])
        else:
            expected = array_of(cast(DenseAttr, op.properties["value"]))
        if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
            return None  # tokens: having come here is all there is to check
        return compare(op, name, cast(Array, actual), cast(Array, expected))


def compare(op: Operation, name: str, actual: Array, expected: Array) -> str | None:
    """What a check says about two arrays; None when it holds."""
    bounds = Bounds(
        least_ulps=int(_number(op, "min_ulp_difference", 0)),
        most_ulps=int(_number(op, "max_ulp_difference", MOST_ULPS)),
        tolerance=_number(op, "tolerance", TOLERANCE),
    )
    return disagreement(name, actual, expected, bounds)


def _used(op: Operation) -> Iterator[SSAValue]:
    """Operands of an op and of all ops in its regions."""
    for inner in op.walk():
        yield from inner.operands


def _symbol(attribute: Attribute) -> str:
    return cast(str, cast(Any, attribute).root_reference.data)


def _attribute(op: Operation, key: str) -> Attribute | None:
    return op.properties.get(key) or op.attributes.get(key)


def _text(op: Operation, key: str) -> str:
    found = _attribute(op, key)
    return found.data if isinstance(found, StringAttr) else ""


def _number(op: Operation, key: str, default: float) -> float:
    found = _attribute(op, key)
    if isinstance(found, IntegerAttr):
        return found.value.data
    value = getattr(found, "value", None)
    return float(value.data) if value is not None else default


def _as_hlo(module: ModuleOp) -> ModuleOp:
    canonicalize_dynamism(module)
    # Nothing is folded: a test is about the ops that stand in it.
    return convert_to_hlo(module, return_tuple=True, simplify=False)


__all__ = ["CheckReport", "Runner", "interpret", "run_checks", "test_functions"]
