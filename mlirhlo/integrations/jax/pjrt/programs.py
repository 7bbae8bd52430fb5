"""Programs that are ready to run, with what JAX asks of them."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import mlirhlo
from mlirhlo.analysis.cost import analyse
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.formats.proto import encode_module, header
from mlirhlo.integrations.jax.ffi import handlers_of, meaning_of
from mlirhlo.integrations.jax.pjrt.callbacks import handlers
from mlirhlo.integrations.jax.pjrt.client import Client
from mlirhlo.integrations.jax.pjrt.machine import TOKEN_TYPE, machine, template, unimplemented
from mlirhlo.integrations.jax.pjrt.objects import address, objects
from mlirhlo.interp import custom_calls
from mlirhlo.lowering.cpu.pipeline import optimize
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.runtime import device_threads

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.interp.machine import Machine
    from mlirhlo.interp.registry import Meaning
    from mlirhlo.runtime.device_threads import Worlds
    from mlirhlo.runtime.executable import Memory

Leaf = ArrayShape | TokenShape
"""What a buffer holds."""


class Executable(Protocol):
    """What runs a module: machine code, or the interpreter."""

    @property
    def memory(self) -> Memory:
        """Bytes that a run works on."""
        ...

    @property
    def aliases(self) -> Mapping[int, int]:
        """By result, the parameter that it may lie over."""
        ...

    @property
    def descriptor(self) -> bytes | None:
        """Of machine code that runs without Python."""
        ...

    @property
    def layouts(self) -> tuple[tuple[int, ...], ...]:
        """Of parameters, then results, as they lie in memory, from minor to major."""
        ...

    @property
    def has_callbacks(self) -> bool:
        """Whether a run calls Python, and needs a machine."""
        ...

    @property
    def custom_calls(self) -> frozenset[str]:
        """Targets of the custom calls that a run makes in Python."""
        ...

    def worlds(self, replicas: int, partitions: int) -> Worlds | None:
        """Where so many devices meet in runs without Python; None where they never do."""
        ...

    def __call__(self, *arguments: Any) -> Any:
        """The result on one device."""
        ...

    def run_ranks(
        self, machine: Machine, own: Sequence[Sequence[Any]], owners: Sequence[int]
    ) -> list[Any]:
        """The results on this process's devices of a machine, where other processes run the others."""
        ...

    def run_on(
        self, machine: Machine, replica: int, partition: int, arguments: Sequence[Any]
    ) -> Any:
        """The result on one device of a machine."""
        ...


@dataclass
class Program:
    """A program of JAX's, compiled for devices of a client."""

    client: Client
    source: bytes
    """The module before optimisations: an HloModuleProto."""
    options: bytes
    """A CompileOptionsProto."""
    module: bytes
    """The module of one device: an HloModuleProto."""
    name: str
    config: bytes
    """The module's configuration, as a field of an HloModuleProtoWithConfig."""
    executable: Executable
    numbers: Sequence[int]
    """The devices, replicas major, by their numbers in the client."""
    replicas: int
    partitions: int
    parameters: Sequence[Leaf]
    results: Sequence[Leaf]
    alone: Mapping[int, int]
    """By number of a callback, the partition that alone calls it."""
    thread: int = field(default_factory=threading.get_ident)
    """That compiled it."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Objects of ctypes that live as long as it does."""
    _foreign: dict[str, Meaning] = field(default_factory=dict)

    @cached_property
    def own(self) -> list[int]:
        """Which of its devices are this process's."""
        client = self.client
        return [n for n, device in enumerate(self.numbers) if client.devices[device].is_addressable]

    @cached_property
    def devices(self) -> list[Any]:
        """Its devices in this process."""
        return [self.client.devices[self.numbers[n]] for n in self.own]

    @cached_property
    def owners(self) -> list[int]:
        """By device, the process that runs it; none where this one runs them all."""
        if len(self.own) == len(self.numbers):
            return []
        return [self.client.process_of(number) for number in self.numbers]

    @property
    def donated(self) -> frozenset[int]:
        """Parameters whose memory a run may use for its results."""
        return frozenset(self.executable.aliases.values())

    @property
    def is_in_place(self) -> bool:
        """Whether the machine code has parameters and results in memory as JAX wants them to lie there."""
        leaves = (*self.parameters, *self.results)
        return tuple(tuple(layout_of(leaf)) for leaf in leaves) == self.executable.layouts

    @property
    def foreign(self) -> Mapping[str, Meaning]:
        """Meanings of the custom calls whose targets are registered with `jax.ffi`."""
        for target in self.executable.custom_calls - self._foreign.keys():
            if custom_calls.meaning_of(target) is None:
                own = handlers.get(target)
                bundle = handlers_of(target) if own is None else {"execute": own}
                if bundle is not None:
                    self._foreign[target] = meaning_of(bundle)
        return self._foreign

    @property
    def is_native(self) -> bool:
        """Whether it runs without Python."""
        return self.is_in_place and self.executable.descriptor is not None and not self.owners

    def prepare(self) -> None:
        """Makes what one more run on several devices takes at a time."""
        device_threads.threads().add(len(self.devices))
        if self.worlds is not None:
            self.worlds.add()

    @cached_property
    def worlds(self) -> Worlds | None:
        """Where its devices meet in runs without Python."""
        return self.executable.worlds(self.replicas, self.partitions)

    @cached_property
    def templates(self) -> list[list[bytes]]:
        """By device and result, the struct that its buffer is copied from."""
        return [
            [
                template(*described(leaf), address(device), device.memory, layout_of(leaf))
                for leaf in self.results
            ]
            for device in self.devices
        ]

    def optimized(self) -> ModuleOp:
        """The module after all passes."""
        module = mlirhlo.load(self.module, "pb").op
        return module if self.client.interpreted else optimize(module, ())

    @cached_property
    def as_optimized(self) -> bytes:
        """The module after all passes, as an HloModuleProtoWithConfig."""
        module = self.optimized()
        return with_config(encode_module(module).SerializeToString(), config_of(HloModule(module)))

    @cached_property
    def costs(self) -> dict[str, float]:
        """XLA's counts of operations and bytes, by its names."""
        return dict(analyse(self.optimized()).total)


_programs: dict[int, Program] = {}
"""By handle."""


def keep(handle: int, program: Program) -> None:
    """Makes a program known by a handle."""
    _programs[handle] = program


def program_at(handle: int) -> Program:
    """The program with this handle."""
    return _programs[handle]


def collect_garbage() -> None:
    """Lets programs go that JAX has given up."""
    head = c.c_int64.from_address(machine().library.address("garbage"))
    first, head.value = head.value, 0
    while first:
        following = objects()["Executable"].from_address(first).next
        _programs.pop(first, None)
        first = following


def leaves(shape: Shape) -> list[Leaf]:
    """Arrays and tokens of a shape. Raises `PjrtError` for what has no buffers."""
    if isinstance(shape, TupleShape):
        return [leaf for part in shape.elements for leaf in leaves(part)]
    if not isinstance(shape, (ArrayShape, TokenShape)):
        raise unimplemented(f"there are no buffers of {shape}")
    return [shape]


def layout_of(leaf: Leaf) -> Sequence[int]:
    """Dimensions from minor to major."""
    return physical_order(leaf)[::-1] if isinstance(leaf, ArrayShape) else ()


def described(leaf: Leaf) -> tuple[str, Sequence[int]]:
    """Type of elements and dimensions."""
    if isinstance(leaf, TokenShape):
        return TOKEN_TYPE, ()
    return leaf.element_type.name, leaf.dimensions


# ---------------------------------------------------------------- protocol buffers


def with_config(module: bytes, config: bytes) -> bytes:
    """An HloModuleProtoWithConfig of its two fields."""
    return _field(1, module) + config


def config_of(module: HloModule) -> bytes:
    """The field of a module's configuration in an HloModuleProtoWithConfig."""
    return _field(2, header.config_of(module).SerializeToString())


def _field(number: int, data: bytes) -> bytes:
    """A message as a field of another."""
    size, length = len(data), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + data
