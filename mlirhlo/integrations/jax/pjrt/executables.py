"""Compiling programs of JAX, and running those that need Python: callbacks, several devices."""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.integrations.jax.pjrt.client import MEMORY, Client
from mlirhlo.integrations.jax.pjrt.interface import Code, structs
from mlirhlo.integrations.jax.pjrt.machine import (
    PjrtError,
    array_on,
    machine,
    numbers_at,
    template,
    text_at,
    type_number,
    unimplemented,
)
from mlirhlo.integrations.jax.pjrt.objects import address, array_of, make, objects
from mlirhlo.integrations.jax.pjrt.partitioning import of_one_device
from mlirhlo.interp.registry import TOKEN
from mlirhlo.lowering.memory_order import physical_order

if TYPE_CHECKING:
    from mlirhlo.formats.proto.compile_options_pb2 import CompileOptionsProto
    from mlirhlo.runtime.executable import Executable


@dataclass
class Compiled:
    """A program of JAX's, compiled for devices of a client."""

    client: Client
    proto: bytes
    """The module before optimisations: an HloModuleProto."""
    options: bytes
    """A CompileOptionsProto."""
    program: bytes
    """The module of one device: an HloModuleProto."""
    executable: Executable
    devices: list[Any]
    results: list[ArrayShape | TokenShape]
    replicas: int
    partitions: int
    parameter_layouts: list[Sequence[int]]
    config: bytes
    """The module's configuration, as `_config` writes it."""
    thread: int = field(default_factory=threading.get_ident)
    """That compiled it."""
    kept: dict[str, Any] = field(default_factory=dict)
    optimized: bytes = b""
    handle: Any = field(init=False)

    @property
    def donated(self) -> frozenset[int]:
        """Parameters whose memory a run may use for its results."""
        return frozenset(self.executable.aliases.values())

    @property
    def result_layouts(self) -> list[Sequence[int]]:
        """Dimensions of each result from minor to major."""
        return [_layout_of(shape) for shape in self.results]

    def __post_init__(self) -> None:
        self.templates = [
            [
                template(*_described(shape), address(device), device.memory, _layout_of(shape))
                for shape in self.results
            ]
            for device in self.devices
        ]


TOKEN_TYPE = "token"

_compiled: dict[int, Compiled] = {}
"""By handle."""


def compiled_at(handle: int) -> Compiled:
    """The program with this handle."""
    return _compiled[handle]


def compile_program(client: Client, program: Any, options: bytes) -> int:
    """Compiles what JAX hands over; the handle of the executable.

    Raises `PjrtError` for a format that is not read, and `HloError` as the compiler does.
    """
    form = text_at(program.format, program.format_size).decode()
    code = text_at(program.code, program.code_size)
    if form == "mlir":
        proto = hlo_of(code)
    elif form == "hlo":
        proto = code
    else:
        raise unimplemented(f"programs in the format {form!r} are not read")
    return load(client, proto, options)


def hlo_of(program: bytes) -> bytes:
    """The HloModuleProto of a StableHLO program, in text, bytecode or as a portable artifact."""
    from jaxlib import xla_client

    mlir = xla_client._xla.mlir
    computation = mlir.mlir_module_to_xla_computation(
        program, use_tuple_args=False, return_tuple=False
    )
    return bytes(computation.as_serialized_hlo_module_proto())


def load(client: Client, proto: bytes, options: bytes) -> int:
    """Compiles an HloModuleProto; the handle."""
    import mlirhlo
    from mlirhlo.formats.proto.compile_options_pb2 import CompileOptionsProto
    from mlirhlo.runtime.compiler import compile_module

    collect_garbage()
    asked = CompileOptionsProto.FromString(options)
    build = asked.executable_build_options
    replicas, partitions = max(build.num_replicas, 1), max(build.num_partitions, 1)
    module = mlirhlo.load(proto, "pb")
    devices = _assigned(client, asked, replicas * partitions)
    program = of_one_device(module.op, replicas, partitions) if len(devices) > 1 else proto
    executable = compile_module(module.op)
    view = HloModule(module.op)
    layout = view.program_layout
    compiled = Compiled(
        client,
        proto,
        options,
        program,
        executable,
        devices,
        _leaves(layout.result),
        replicas,
        partitions,
        [_layout_of(leaf) for shape in layout.parameters for leaf in _leaves(shape)],
        _config(view),
    )
    compiled.handle = _handle(compiled, view.name)
    handle = c.addressof(compiled.handle)
    _compiled[handle] = compiled
    return handle


def _leaves(shape: Shape) -> list[ArrayShape | TokenShape]:
    """Raises `PjrtError` for what has no buffers."""
    if isinstance(shape, TupleShape):
        return [leaf for part in shape.elements for leaf in _leaves(part)]
    if not isinstance(shape, (ArrayShape, TokenShape)):
        raise unimplemented(f"there are no buffers of {shape}")
    return [shape]


def _layout_of(shape: ArrayShape | TokenShape) -> Sequence[int]:
    """Dimensions from minor to major."""
    return physical_order(shape)[::-1] if isinstance(shape, ArrayShape) else ()


def _described(shape: ArrayShape | TokenShape) -> tuple[str, Sequence[int]]:
    """Type of elements and dimensions."""
    if isinstance(shape, TokenShape):
        return TOKEN_TYPE, ()
    return shape.element_type.name, shape.dimensions


def _assigned(client: Client, options: CompileOptionsProto, count: int) -> list[Any]:
    """The devices of a program, in the order of replicas, then partitions."""
    build = options.executable_build_options
    if build.HasField("device_assignment"):
        columns = [
            list(one.replica_device_ids) for one in build.device_assignment.computation_devices
        ]
        numbers = [column[r] for r in range(len(columns[0])) for column in columns]
    elif build.device_ordinal >= 0:
        numbers = [build.device_ordinal]
    else:
        numbers = list(range(count))
    if len(numbers) != count or not all(0 <= n < client.count for n in numbers):
        raise PjrtError(
            Code.INVALID_ARGUMENT, f"the program is for devices {numbers}, there are {client.count}"
        )
    return [client.devices[n] for n in numbers]


def _handle(compiled: Compiled, name: str) -> Any:
    """The object that JAX holds."""
    import hashlib

    executable, results = compiled.executable, compiled.results
    memory = executable.memory
    parameters = len(executable.parameter_bytes)
    kinds = max(len(results), parameters, 1)
    kind = c.create_string_buffer(MEMORY.encode())
    templates = [c.create_string_buffer(one, len(one)) for one in compiled.templates[0]]
    ids = [n for r in range(compiled.replicas) for p in range(compiled.partitions) for n in (r, p)]
    donated = [0] * parameters
    for number in compiled.donated:
        donated[number] = 1
    descriptor = executable.descriptor if len(compiled.devices) == 1 else None
    kept = c.create_string_buffer(descriptor, len(descriptor)) if descriptor else None
    shapes = [_described(shape) for shape in results]
    dims = [d for _, sizes in shapes for d in sizes]
    return make(
        "Executable",
        references=1,
        descriptor=kept,
        templates=templates,
        template_sizes=[len(one) for one in compiled.templates[0]],
        expected_bytes=list(executable.parameter_bytes),
        num_parameters=parameters,
        is_donated=donated,
        executable_name=name,
        executable_fingerprint=hashlib.sha256(compiled.proto + compiled.options).hexdigest(),
        num_replicas=compiled.replicas,
        num_partitions=compiled.partitions,
        num_outputs=len(results),
        memory_kinds=[kind] * kinds,
        memory_kind_sizes=[len(MEMORY)] * kinds,
        addressable_devices=compiled.devices,
        output_types=array_of([type_number(name) for name, _ in shapes], c.c_int),
        num_output_types=len(results),
        dims=dims,
        dim_sizes=[len(sizes) for _, sizes in shapes],
        addressable_device_logical_ids=array_of(ids, c.c_int),
        num_addressable_device_logical_ids=len(compiled.devices),
        argument_size_in_bytes=memory.parameters,
        output_size_in_bytes=memory.results,
        temp_size_in_bytes=memory.temporaries,
        peak_memory_in_bytes=memory.parameters + memory.results + memory.temporaries,
    )


def collect_garbage() -> None:
    """Lets executables go that nobody holds any more."""
    head = c.c_int64.from_address(machine().library.address("garbage"))
    first, head.value = head.value, 0
    while first:
        following = objects()["Executable"].from_address(first).next
        _compiled.pop(first, None)
        first = following


def execute(args: Any) -> None:
    """Runs a program that machine code alone does not run, on every device of it."""
    compiled = _compiled[args.executable]
    lists = numbers_at(args.argument_lists, args.num_devices)
    given = [numbers_at(one, args.num_args, c.c_size_t) for one in lists]
    outputs = numbers_at(args.output_lists, args.num_devices)
    arguments = [[_value_on(buffer) for buffer in buffers] for buffers in given]
    if args.num_devices != len(compiled.devices):
        raise PjrtError(
            Code.INVALID_ARGUMENT, f"the program is for {len(compiled.devices)} devices"
        )
    results = _run(compiled, arguments, args)
    code = machine()
    options = structs()["ExecuteOptions"].from_address(args.options)
    kept = numbers_at(options.non_donatable_input_indices, options.num_non_donatable_input_indices)
    for device, (values, output) in enumerate(zip(results, outputs, strict=True)):
        made = [
            _filled(*one)
            for one in zip(compiled.templates[device], values, compiled.results, strict=True)
        ]
        (c.c_size_t * max(len(made), 1)).from_address(output)[: len(made)] = made
        for number in compiled.donated:
            if number not in kept:
                delete(given[device][number])
    if args.device_complete_events:
        events = (c.c_size_t * args.num_devices).from_address(args.device_complete_events)
        events[:] = [code.ready] * args.num_devices


def _filled(made: bytes, value: Any, shape: ArrayShape | TokenShape) -> int:
    """The buffer of a result."""
    if isinstance(shape, TokenShape):
        return machine().buffer(made, machine().storage(0))
    return machine().filled(made, value.transpose(physical_order(shape)))


def _value_on(buffer: int) -> Any:
    """What a parameter gets."""
    is_token = objects()["Buffer"].from_address(buffer).type == type_number(TOKEN_TYPE)
    return TOKEN if is_token else array_on(buffer)


def delete(buffer: int) -> None:
    """Deletes a buffer whose value is no longer needed."""
    from mlirhlo.integrations.jax.pjrt.interface import arguments

    kind = arguments()["Buffer_Delete"]
    machine().delete(c.addressof(kind(struct_size=c.sizeof(kind), buffer=buffer)))


def _run(compiled: Compiled, arguments: Sequence[Sequence[Any]], args: Any) -> list[list[Any]]:
    """Results by device."""
    executable = compiled.executable
    if len(arguments) == 1 and not executable.has_callbacks:
        return [_flat(executable(*arguments[0]))]
    from mlirhlo.integrations.jax.pjrt.callbacks import machine_for

    simulated = machine_for(compiled, args)
    if len(arguments) == 1:
        return [_flat(executable.run_on(simulated, 0, 0, arguments[0]))]
    found = simulated.run_devices(
        lambda r, p: executable.run_on(simulated, r, p, arguments[r * compiled.partitions + p])
    )
    return [_flat(one) for one in found]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in _flat(part)]
    return [result]


# ---------------------------------------------------------------- serialised forms


def serialized(compiled: Compiled) -> bytes:
    """The program and its options; machine code is made again, or comes from this compiler's cache."""
    sizes = len(compiled.options).to_bytes(8, "little")
    return _MAGIC + sizes + compiled.options + compiled.proto


_MAGIC = b"mlirhlo program 1\n"


def restore(client: Client, data: bytes) -> int:
    """Compiles what `serialized` made; the handle. Raises `PjrtError` for anything else."""
    start = len(_MAGIC) + 8
    size = int.from_bytes(data[len(_MAGIC) : start], "little")
    if not data.startswith(_MAGIC) or start + size > len(data):
        raise PjrtError(Code.INVALID_ARGUMENT, "not an executable that mlirhlo serialised")
    return load(client, data[start + size :], data[start : start + size])


def program_of(compiled: Compiled) -> bytes:
    """The module as an HloModuleProtoWithConfig: after all passes, or before them for the thread that compiled it.

    JAX asks right after the compilation, on the compiler's thread, for the shardings of parameters and results, which are the same in
    both; whoever asks later wants to see what is executed.
    """
    if threading.get_ident() == compiled.thread:
        return b"\x0a" + _varint(len(compiled.program)) + compiled.program + compiled.config
    if not compiled.optimized:
        import mlirhlo
        from mlirhlo.formats.proto import encode_module
        from mlirhlo.lowering.cpu.pipeline import optimize

        module = optimize(mlirhlo.load(compiled.program, "pb").op, ())
        proto = encode_module(module).SerializeToString()
        compiled.optimized = b"\x0a" + _varint(len(proto)) + proto + _config(HloModule(module))
    return compiled.optimized


def _config(module: HloModule) -> bytes:
    """The field of a module's configuration in an HloModuleProtoWithConfig."""
    from mlirhlo.formats.proto.header import config_of

    data = config_of(module).SerializeToString()
    return b"\x12" + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """A number as protocol buffers write it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def assignment(compiled: Compiled) -> bytes:
    """The devices of a program, as a DeviceAssignmentProto."""
    from mlirhlo.formats.proto.sharding_pb2 import DeviceAssignmentProto

    message = DeviceAssignmentProto(
        replica_count=compiled.replicas, computation_count=compiled.partitions
    )
    numbers = [device.local_hardware_id for device in compiled.devices]
    for partition in range(compiled.partitions):
        column = message.computation_devices.add()
        column.replica_device_ids.extend(numbers[partition :: compiled.partitions])
    return message.SerializeToString()
