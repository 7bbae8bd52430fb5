"""The engine: runs modules on prepared plans, one instruction after the other.

Calls between computations live on a stack of the engine's own, so loops and call chains of any
depth run without recursion. A hook sees every instruction with its inputs and its result.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirhlo.analysis.call_graph import callees_first
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import TokenShape, TupleShape, leaves
from mlirhlo.interp import vectorised
from mlirhlo.interp.device_counts import machine_for
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.plans import FAILURES, Plan, Step, failed, make_plan, place_of, prepare
from mlirhlo.interp.registry import Array, Call, Value
from mlirhlo.interp.values import mismatch, results_of, unflatten, value_from

Hook: TypeAlias = Callable[[Instruction, Sequence[Value], Value], None]
"""Called after every instruction with its inputs and its result."""

_LOADED: list[bool] = []


def load_meanings() -> None:
    """Imports every module of the interpreter, so that all meanings are registered."""
    if _LOADED:
        return
    package = import_module("mlirhlo.interp")
    for name in sorted(
        info.name for info in pkgutil.walk_packages(package.__path__, "mlirhlo.interp.")
    ):
        import_module(name)
    _LOADED.append(True)


class Interpreter:
    """Runs one module. Plans are made once per computation; `run` may be called from threads."""

    def __init__(
        self,
        module: ModuleOp,
        machine: Machine | None = None,
        hook: Hook | None = None,
        *,
        check: bool = False,
    ) -> None:
        """`machine`: the simulated devices, one device of its own by default. `hook`: see `Hook`.
        `check`: hold every result against its declared shape (HLO0305).
        """
        load_meanings()
        self.module: HloModule = HloModule(module)
        self.hook: Hook | None = hook
        self.check: bool = check
        self._machine: Machine | None = machine
        self._computations: dict[str, ComputationOp] = self.module.by_name()
        self._plans: dict[str, Plan] = {}
        self._parts: dict[SSAValue, Plan] = {}
        self._vectorises: dict[str, bool] = {}
        self._effects: SideEffects = SideEffects.of(self.module)

    @property
    def machine(self) -> Machine:
        """The simulated devices."""
        if self._machine is None:
            self._machine = machine_for(self.module.op)
        return self._machine

    def computation(self, name: str) -> ComputationOp:
        """The computation of that name. Raises `HloError` HLO0304."""
        found = self._computations.get(name)
        if found is None:
            raise error("HLO0304", f"the module has no computation %{name}")
        return found

    def plan(self, name: str) -> Plan:
        """The plan of a computation."""
        plan = self._plans.get(name)
        if plan is None:
            with paused_gc():
                plan = self._plans[name] = make_plan(self.computation(name), self)
        return plan

    def has_side_effect(self, op: Instruction) -> bool:
        """Whether `op` is run even if no result depends on it."""
        return self._effects.of_instruction(op)

    def part(self, value: SSAValue) -> Plan:
        """The plan of what `value` needs within its computation."""
        plan = self._parts.get(value)
        if plan is None:
            computation = cast(ComputationOp, cast(Instruction, value.owner).parent_op())
            plan = self._parts[value] = make_plan(computation, self, value)
        return plan

    def vectorises(self, name: str) -> bool:
        """Whether a computation on scalars may be given whole arrays instead."""
        if name not in self._vectorises:
            for needed in callees_first(name, self._callees, self._vectorises.__contains__):
                self._vectorises[needed] = False  # what a computation that calls itself meets
                vectorises = vectorised.vectorises(self.computation(needed), self)
                self._vectorises[needed] = vectorises
        return self._vectorises[name]

    def _callees(self, name: str) -> list[str]:
        """Computations that instructions of another one call."""
        return [c for op in self.computation(name).instructions for c in op.called_computations]

    def evaluate(self, op: Instruction, inputs: Sequence[Value]) -> Value:
        """What one instruction gives for the values of its inputs."""
        frame = DeviceFrame(self)
        with np.errstate(all="ignore"):
            value: Any = prepare(op, self)(inputs, frame)
            if isinstance(value, Generator):
                running: Generator[Any, Any, Any] = value
                answer: Any = None
                while True:
                    try:
                        request: Call = running.send(answer)
                    except StopIteration as done:
                        value = done.value
                        break
                    answer = frame.call(request.computation, request.arguments)
        return np.asarray(value) if isinstance(value, np.generic) else cast(Value, value)

    # -------------------------------------------------------------- running

    def run(self, inputs: Sequence[object], *, replica: int = 0, partition: int = 0) -> Value:
        """The entry's result for the given parameters, on one device.

        Where devices meet in collectives, a call from outside of `Machine.run_devices` runs all of
        them on the same inputs.

        `inputs`: one value per entry parameter, or the leaves of them all in order (see
        `value_from` for what is taken). Raises `HloError` HLO0302 and HLO0303 for inputs that do
        not fit, and what the instructions raise.
        """
        try:
            entry = self.module.entry
        except ValueError as problem:
            raise error("HLO0304", str(problem)) from None
        values = self.inputs(inputs)
        if self.machine.must_run_all(self.module):
            # Others would be missed where devices meet: all run, on the same inputs.
            results = self.machine.run_devices(
                lambda r, p: self.run(values, replica=r, partition=p)
            )
            return results[self.machine.device(replica, partition)]
        with np.errstate(all="ignore"):
            frame = DeviceFrame(self, replica, partition)
            return self.execute(self.plan(entry.computation_name), values, frame)

    def inputs(self, given: Sequence[object]) -> list[Value]:
        """`given` as values of the entry's parameters. Raises `HloError` HLO0302 and HLO0303."""
        parameters = self.module.entry.parameters
        shapes = [parameter.shape for parameter in parameters]
        grouped = len(given) == len(shapes) and all(
            isinstance(value, (tuple, list)) or not isinstance(shape, TupleShape)
            for value, shape in zip(given, shapes, strict=True)
        )
        if not grouped:
            found = [leaf for shape in shapes for _, leaf in leaves(shape)]
            count = sum(not isinstance(leaf, TokenShape) for leaf in found)
            if len(given) != count:
                raise error(
                    "HLO0302",
                    f"the entry computation takes {len(shapes)} parameters"
                    + (f" ({count} arrays)" if count != len(shapes) else "")
                    + f", {len(given)} given",
                )
            parts = iter(given)
            given = [unflatten(parts, shape) for shape in shapes]
        return [
            value_from(
                value, parameter.shape, f"parameter {number} (%{parameter.instruction_name})"
            )
            for number, (value, parameter) in enumerate(zip(given, parameters, strict=True))
        ]

    def execute(
        self,
        plan: Plan,
        arguments: Sequence[Value],
        frame: DeviceFrame,
        *,
        spread: bool = False,
    ) -> Value:
        """Runs a plan on values that fit it.

        `spread`: the plan is of scalars and gets arrays; such calls are neither checked nor hooked.
        """
        stack: list[tuple[Plan, list[Any], int, Step, Sequence[Any], Generator[Any, Any, Any]]] = []
        slots, position = self._begin(plan, arguments, spread), 0
        watched = not spread and (self.hook is not None or self.check)
        step: Step | None = None
        inputs: Sequence[Any] = ()
        try:
            while True:
                steps = plan.steps
                count = len(steps)
                answer: Any = None
                running: Generator[Any, Any, Any] | None = None
                while position < count:
                    step = steps[position]
                    position += 1
                    inputs = [slots[operand] for operand in step.operands]
                    if not watched:
                        # Before it runs: then it may take over what nobody else holds.
                        for slot in step.frees:
                            slots[slot] = None
                    value: Any = step.run(inputs, frame)
                    if step.calls:
                        running = value
                        if watched:
                            for slot in step.frees:
                                slots[slot] = None
                        else:
                            inputs = ()
                        break
                    if value.__class__ is not np.ndarray and isinstance(value, np.generic):
                        value = np.asarray(value)
                    if not step.unused:
                        slots[step.result] = value
                    if watched:
                        self._watch(step.op, inputs, value)
                        for slot in step.frees:
                            slots[slot] = None
                    value = None
                if running is None:
                    answer = slots[plan.root]
                    if not stack:
                        return answer
                    plan, slots, position, step, inputs, running = stack.pop()
                assert step is not None
                try:
                    request: Call = running.send(answer)
                except StopIteration as done:
                    slots[step.result] = done.value
                    if watched:
                        self._watch(step.op, inputs, done.value)
                    continue
                stack.append((plan, slots, position, step, inputs, running))
                if len(stack) > len(self._computations):
                    raise error("HLO0304", "computations call each other without end")
                plan = self.plan(request.computation)
                slots, position = self._begin(plan, request.arguments, spread), 0
                if request.hands_over and isinstance(request.arguments, list):
                    request.arguments.clear()
        except HloError as problem:
            if step is None:
                raise
            raise problem.at(place_of(step.op)) from problem.__cause__
        except FAILURES as problem:
            if step is None:
                raise
            raise failed(step.op, inputs, problem) from problem

    def _begin(self, plan: Plan, arguments: Sequence[Value], spread: bool) -> list[Any]:
        if plan.parameter_count not in (-1, len(arguments)):
            raise error(
                "HLO0302",
                f"computation %{plan.name} takes {plan.parameter_count} parameters, {len(arguments)} given",
            )
        slots = plan.template.copy()
        for slot, number, _ in plan.parameters:
            slots[slot] = arguments[number]
        if self.hook is not None and not spread:
            for slot, _, op in plan.parameters:
                self.hook(op, (), slots[slot])
            for slot, constant in plan.constants:
                self.hook(constant, (), slots[slot])
        return slots

    def _watch(self, op: Instruction, inputs: Sequence[Any], value: Value) -> None:
        if self.check:
            got = mismatch(value, op.shape)
            if got is not None:
                raise error(
                    "HLO0305",
                    f"{op.opcode.name}: %{op.instruction_name} is declared {op.shape} but gives {got}",
                )
        if self.hook is not None:
            self.hook(op, inputs[: len(op.inputs)], value)


_MAX_DEPTH = 100


class DeviceFrame:
    """One device's view of a running module; see the protocol `Frame`."""

    __slots__ = ("depth", "interpreter", "partition", "replica")

    def __init__(self, interpreter: Interpreter, replica: int = 0, partition: int = 0) -> None:
        self.interpreter: Interpreter = interpreter
        self.replica: int = replica
        self.partition: int = partition
        self.depth: int = 0
        """Functions of elements that are running, each inside the one before."""

    @property
    def program(self) -> Interpreter:
        """The module."""
        return self.interpreter

    @property
    def machine(self) -> Machine:
        """The simulated devices."""
        return self.interpreter.machine

    def call(self, computation: str, arguments: Sequence[Value]) -> Value:
        """Runs a computation of the module."""
        interpreter = self.interpreter
        return interpreter.execute(interpreter.plan(computation), arguments, self)

    def value(self, value: SSAValue, arguments: Sequence[Value]) -> Value:
        """What one value of a scalar computation is, place by place of the `arguments`."""
        interpreter = self.interpreter
        return interpreter.execute(interpreter.part(value), arguments, self, spread=True)

    def call_elementwise(self, computation: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Applies a scalar computation to the elements at each place of arrays of one shape."""
        if self.depth >= _MAX_DEPTH:
            raise error(
                "HLO0309",
                f"functions of elements are nested deeper than {_MAX_DEPTH}; the innermost is %{computation}",
                help="inline them: hlo-opt --passes=map-inline,call-inliner",
            )
        self.depth += 1
        try:
            return self._elementwise(computation, arguments)
        finally:
            self.depth -= 1

    def _elementwise(self, computation: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        if self.interpreter.vectorises(computation):
            plan = self.interpreter.plan(computation)
            value = self.interpreter.execute(plan, arguments, self, spread=True)
            return vectorised.at_once(value, arguments)
        root = self.interpreter.computation(computation).root.shape
        return vectorised.one_by_one(
            lambda scalars: self.call(computation, scalars), arguments, root
        )


def evaluate(op: Instruction, inputs: Sequence[Value]) -> Value:
    """What one instruction gives for the values of its inputs; for folding and for tests.

    Raises `HloError` HLO0300 when its opcode has no meaning; called computations are looked up in
    the module that holds `op`.
    """
    load_meanings()
    module = op.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    interpreter = Interpreter(ModuleOp([]) if module is None else module)
    return interpreter.evaluate(op, inputs)


def run_module(
    module: ModuleOp,
    inputs: Sequence[object],
    *,
    replica: int = 0,
    partition: int = 0,
    machine: Machine | None = None,
    hook: Hook | None = None,
    check: bool = False,
) -> list[Array]:
    """The outputs of `module` on one device: arrays in result order, tuples flattened.

    Raises `HloError`; see `Interpreter.run`.
    """
    interpreter = Interpreter(module, machine, hook, check=check)
    return results_of(interpreter.run(inputs, replica=replica, partition=partition))


def run_spmd(
    module: ModuleOp,
    inputs_per_device: Sequence[Sequence[object]],
    *,
    machine: Machine | None = None,
    check: bool = False,
) -> list[list[np.ndarray[Any, np.dtype[Any]]]]:
    """The outputs of `module` on every device: arrays in result order, tuples flattened.

    `inputs_per_device`: the entry's parameters for each device, by global device number (replicas
    major); one entry stands for all devices. Raises `HloError`: HLO0353 for a wrong number of
    devices, and what instructions raise.
    """
    machine = machine_for(module) if machine is None else machine
    count = machine.device_count
    if len(inputs_per_device) not in (1, count):
        raise error(
            "HLO0353",
            f"the module runs on {machine.replicas} × {machine.partitions} devices, "
            f"inputs are given for {len(inputs_per_device)}",
        )
    interpreter = Interpreter(module, machine, check=check)

    def program(replica: int, partition: int) -> list[np.ndarray[Any, np.dtype[Any]]]:
        device = machine.device(replica, partition)
        inputs = inputs_per_device[device if len(inputs_per_device) > 1 else 0]
        return results_of(interpreter.run(inputs, replica=replica, partition=partition))

    return machine.run_devices(program)
