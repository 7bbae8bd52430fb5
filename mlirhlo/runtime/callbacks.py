"""Calls from machine code back into Python: instructions that have no machine code.

A plan lists its sites; generated code calls `mlirhlo_callback(site, pointers)`, one function for the
whole process, and the run under way on that thread knows the rest: the interpreter's meaning of the
instruction is applied to arrays over the buffers. Values that memory does not know (of dynamic sizes)
stay in Python between two calls. An error is kept, makes the code's loops end, and is raised by the run.

Such calls are counted (`Executable.callbacks`), and a module that needs some is warned about (HLO0438).
"""

from __future__ import annotations

import ctypes
import functools
import logging
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import Diagnostic, HloError, Severity
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, TokenShape, TupleShape
from mlirhlo.interp.device_counts import device_counts
from mlirhlo.interp.engine import DeviceFrame, Interpreter, load_meanings
from mlirhlo.interp.machine import Machine, Stopped
from mlirhlo.interp.plans import FAILURES, failed, place_of, prepare
from mlirhlo.interp.registry import TOKEN, Array, Call, DynamicArray, Run, Value
from mlirhlo.lowering.cpu.emit import CALLBACK
from mlirhlo.lowering.memory_order import physical_dimensions
from mlirhlo.lowering.plan.steps import Held, Site, Tree
from mlirhlo.runtime.calls import logical
from mlirhlo.runtime.meetings import World

if TYPE_CHECKING:
    from mlirhlo.lowering.plan.plan import Plan

LOG = logging.getLogger(__name__)

Addresses: TypeAlias = "Iterator[int]"
"""Of a site's buffers, in order."""

_here = threading.local()
"""`runs`: the runs under way on a thread, the innermost last."""


class Callbacks:
    """The sites of a plan, ready to run."""

    def __init__(
        self, plan: Plan, *, warns: bool = True, meanings: Mapping[Instruction, Run] | None = None
    ) -> None:
        """`warns`: of what Python will run (HLO0438). `meanings`: what runs in place of the interpreter's."""
        load_meanings()
        self.module = HloModule(_module_of(plan.sites))
        self.interpreter = Interpreter(self.module.op)
        self.devices = device_counts(self.module)
        known = meanings or {}
        self.sites = [
            _Prepared(site, self.interpreter, None if site.op is None else known.get(site.op))
            for site in plan.sites
        ]
        self.slots = plan.slots
        self.counts: Counter[str] = Counter()
        """Calls so far, by what the instructions are."""
        self._lock = threading.Lock()
        if warns:
            _warn(plan.sites)
        self._natives = plan.sites if any(site.is_native for site in plan.sites) else ()
        self._worlds: dict[tuple[int, int], list[World]] = {}
        """Those that no run uses, by the machine's sizes."""

    def machine(self) -> Machine:
        """A machine of as many devices as the module wants."""
        return Machine(self.devices.replicas, self.devices.partitions)

    def start(
        self, machine: Machine, replica: int, partition: int, *, meets: bool = True
    ) -> Running:
        """A run on one device of a machine; `meets`: whether it needs a world of this process to meet others in."""
        program = _Program(self.interpreter, machine)
        world = self._world(machine) if self._natives and meets else None
        return Running(self, DeviceFrame(program, replica, partition), world)

    def _world(self, machine: Machine) -> World:
        """The world in which the devices of a run meet."""
        sizes = machine.replicas, machine.partitions
        with self._lock:
            world = cast("World | None", machine.watched.get(self))
            if world is None or world.is_ended:
                free = self._worlds.get(sizes)
                world = free.pop() if free else World(self._natives, machine)
                world.renew(machine)
                machine.watched[self] = world
            world.running += 1
            return world

    def leave(self, world: World) -> None:
        """Ends the run of a device; with that of the last one the world is free."""
        with self._lock:
            world.running -= 1
            if world.running or world.machine.watched.get(self) is not world:
                return
            del world.machine.watched[self]
            if not world.is_ended:
                sizes = world.machine.replicas, world.machine.partitions
                self._worlds.setdefault(sizes, []).append(world)

    def count(self, name: str) -> None:
        """Counts a call."""
        with self._lock:
            self.counts[name] += 1


def _module_of(sites: Sequence[Site]) -> ModuleOp:
    """The module whose instructions the sites are; an empty one where nothing but values is moved."""
    owner: Any = next((site.op for site in sites if site.op is not None), None)
    while owner is not None and not isinstance(owner, ModuleOp):
        owner = owner.parent_op()
    return ModuleOp([]) if owner is None else owner


class _Program(Interpreter):
    """The interpreter of a module on another machine; its plans are shared."""

    def __init__(self, interpreter: Interpreter, machine: Machine) -> None:
        self.__dict__.update(interpreter.__dict__)
        self._machine = machine


class Running:
    """One run of an executable, on one device."""

    def __init__(self, callbacks: Callbacks, frame: DeviceFrame, world: World | None) -> None:
        self.callbacks = callbacks
        self.frame = frame
        self.held: list[Value] = [None] * callbacks.slots
        """What Python holds, by slot."""
        self.world = world
        self._problem: BaseException | None = None

    def __enter__(self) -> Running:
        runs: list[Running] | None = getattr(_here, "runs", None)
        if runs is None:
            runs = _here.runs = []
        runs.append(self)
        return self

    @property
    def contexts(self) -> list[Array]:
        """What code finds behind the parameters."""
        if self.world is None:
            return []
        frame = self.frame
        return [self.world.context(frame.machine.device(frame.replica, frame.partition))]

    def __exit__(self, kind: object, *_: object) -> None:
        _here.runs.pop()
        world = self.world
        if world is not None:
            if kind is not None or self._problem is not None:
                world.end()
            self.callbacks.leave(world)
            if world.is_ended and self._problem is None and kind is None:
                raise world.take_fault() or Stopped
        if self._problem is not None:
            raise self._take_problem()

    def _take_problem(self) -> BaseException:
        """The error, which nothing here refers to any longer: its traceback refers to this run."""
        problem, self._problem = self._problem, None
        assert problem is not None
        return problem

    def call(self, number: int, pointers: Any) -> int:
        """Runs a site; 1 when it, or one before it, has failed."""
        if self._problem is None:
            try:
                site = self.callbacks.sites[number]
                if site.name:
                    self.callbacks.count(site.name)
                with np.errstate(all="ignore"):
                    site(self, pointers)
            except BaseException as problem:  # noqa: BLE001 - it cannot pass through machine code
                self._problem = problem
        return int(self._problem is not None)


class _Prepared:
    """A site with its instruction worked in."""

    def __init__(self, site: Site, interpreter: Interpreter, meaning: Run | None) -> None:
        self.site = site
        self.name = "" if site.op is None else describe(site.op)
        self._interpreter = interpreter
        self._meaning = meaning

    def __call__(self, running: Running, pointers: Any) -> None:
        site, op = self.site, self.site.op
        addresses = _each(pointers)
        if op is None:
            sources, targets = (cast("tuple[Held, ...]", t) for t in (*site.operands, site.result))
            values = [running.held[source.slot] for source in sources]
            for target, value in zip(targets, values, strict=True):
                running.held[target.slot] = value
            return
        inputs = [
            _value(tree, shape, addresses, running)
            for tree, shape in zip(site.operands, op.input_shapes, strict=True)
        ]
        try:
            result = self._run(op, inputs, running.frame)
            _give(result, site.result, op.shape, addresses, running)
        except HloError as problem:
            raise problem.at(place_of(op)) from problem.__cause__
        except FAILURES as problem:
            raise failed(op, inputs, problem) from problem

    def _run(self, op: Instruction, inputs: Sequence[Value], frame: DeviceFrame) -> Value:
        if self._meaning is None:
            self._meaning = prepare(op, self._interpreter)
        result: Any = self._meaning(inputs, frame)
        if not isinstance(result, Generator):
            return cast(Value, result)
        steps = cast("Generator[Call, Value, Value]", result)
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as done:
                return cast(Value, done.value)
            answer = frame.call(request.computation, request.arguments)


def _each(pointers: Any) -> Iterator[int]:
    at = 0
    while True:
        yield pointers[at]
        at += 1


def _array(shape: Shape, address: int) -> Array:
    """The array that stands at an address, in logical order."""
    array = shape.element if isinstance(shape, BufferShape) else cast(ArrayShape, shape)
    dtype = np.dtype(array.element_type.dtype)
    sizes = physical_dimensions(array)
    if 0 in sizes:
        return np.empty(array.dimensions, dtype)
    memory: Any = (ctypes.c_byte * (array.element_count * dtype.itemsize)).from_address(address)
    values = cast(Array, np.frombuffer(memory, dtype)).reshape(sizes)
    return logical(values, array)


def _value(tree: Tree, shape: Shape, addresses: Addresses, running: Running) -> Value:
    """An operand, in arrays of its own: meanings may keep it, or hand it to another device."""
    if isinstance(tree, Held):
        return running.held[tree.slot]
    if isinstance(shape, TokenShape):
        return TOKEN
    if isinstance(tree, tuple):
        parts = zip(tree, cast(TupleShape, shape).elements, strict=True)
        return tuple(_value(part, s, addresses, running) for part, s in parts)
    return _array(shape, next(addresses)).copy()


def _give(value: Any, tree: Tree, shape: Shape, addresses: Addresses, running: Running) -> None:
    """Puts a result where it goes."""
    if isinstance(tree, Held):
        running.held[tree.slot] = _kept(value)
    elif isinstance(tree, tuple):
        if isinstance(shape, TupleShape):
            for part, place, s in zip(value, tree, shape.elements, strict=True):
                _give(part, place, s, addresses, running)
    else:
        data = value.data if isinstance(value, DynamicArray) else value
        target = _array(shape, next(addresses))
        if np.shape(data) != target.shape:  # numpy would broadcast it
            raise ValueError(f"the result has sizes {list(np.shape(data))}, not {shape}")
        target[...] = data


def _kept(value: Any) -> Value:
    """A value that outlives the buffers it may look into."""
    if isinstance(value, DynamicArray):
        return DynamicArray(np.array(value.data), value.sizes)
    if isinstance(value, tuple):
        return tuple(_kept(part) for part in cast("tuple[Any, ...]", value))
    is_array = isinstance(value, (np.ndarray, np.generic))
    return cast(Array, np.array(cast(Any, value))) if is_array else value


def describe(op: Instruction) -> str:
    """What callbacks are counted under: the opcode, of custom calls with the target."""
    target = getattr(op, "custom_call_target", None)
    return op.opcode.name if target is None else f"{op.opcode.name} {target}"


def _is_of_the_user(op: Instruction) -> bool:
    """Whether an instruction calls a Python function of the program's own, as `jax.pure_callback` does."""
    return str(getattr(op, "custom_call_target", "")).endswith("_python_cpu_callback")


def _warn(sites: Sequence[Site]) -> None:
    ops = [site.op for site in sites if site.op is not None and not site.is_native]
    counts = Counter(describe(op) for op in ops if not _is_of_the_user(op))
    if not counts:
        return
    listed = ", ".join(f"{name} ({count})" for name, count in counts.most_common())
    diagnostic = Diagnostic(
        "HLO0438",
        f"{sum(counts.values())} instructions have no machine code and run in Python: {listed}",
        severity=Severity.WARNING,
    )
    LOG.warning("%s", diagnostic)


# ---------------------------------------------------------------- the function outside


def call_site(number: int, pointers: Any) -> int:
    """Runs a site of the run under way on this thread; 1 when it, or one before it, has failed."""
    running: Running = _here.runs[-1]
    return running.call(number, pointers)


_callback = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))(
    call_site
)


@functools.cache
def _address() -> int:
    address = ctypes.cast(_callback, ctypes.c_void_p).value
    assert address is not None
    return address


def externals(text: str) -> dict[str, int]:
    """Addresses of what LLVM assembly calls of this module."""
    return {CALLBACK: _address()} if f"@{CALLBACK}(" in text else {}
