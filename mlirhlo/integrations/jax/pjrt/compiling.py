"""Compiling programs of JAX."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
import hashlib
import sys
import threading
from typing import TYPE_CHECKING, Any

import mlirhlo
from mlirhlo.debug.dump import flags_for
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.proto.compile_options_pb2 import CompileOptionsProto
from mlirhlo.formats.proto.sharding_pb2 import DeviceAssignmentProto
from mlirhlo.integrations.jax.callbacks import partitions_alone
from mlirhlo.integrations.jax.pjrt.client import MEMORIES, Client
from mlirhlo.integrations.jax.pjrt.interface import Code
from mlirhlo.integrations.jax.pjrt.interpreted import Interpreted
from mlirhlo.integrations.jax.pjrt.layout_modes import with_layouts
from mlirhlo.integrations.jax.pjrt.machine import (
    PjrtError,
    bytes_of,
    text_at,
    type_number,
    unimplemented,
)
from mlirhlo.integrations.jax.pjrt.objects import array_of, make
from mlirhlo.integrations.jax.pjrt.partitioning import of_one_device
from mlirhlo.integrations.jax.pjrt.programs import (
    Executable,
    Program,
    collect_garbage,
    config_of,
    described,
    keep,
    leaves,
    with_config,
)
from mlirhlo.integrations.optional import require
from mlirhlo.runtime.compiler import compile_module

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def compile_program(client: Client, program: Any, options: bytes) -> int:
    """Compiles what JAX hands over; the handle of the executable.

    Raises `PjrtError` for a format that is not read, and `HloError` as the compiler does.
    """
    form = text_at(program.format, program.format_size).decode()
    code = text_at(program.code, program.code_size)
    if form == "mlir":
        return load(client, hlo_of(code), options)
    if form == "hlo":
        return load(client, code, options)
    raise unimplemented(f"programs in the format {form!r} are not read")


def hlo_of(program: bytes) -> bytes:
    """The HloModuleProto of a StableHLO program, in text, bytecode or as a portable artifact."""
    xla_client: Any = require("jaxlib.xla_client", "jax", "the platform of JAX")
    mlir = xla_client._xla.mlir
    computation = mlir.mlir_module_to_xla_computation(
        program, use_tuple_args=False, return_tuple=False
    )
    return with_layouts(computation.as_serialized_hlo_module_proto(), program)


def load(client: Client, source: bytes, options: bytes) -> int:
    """Compiles an HloModuleProto; the handle."""
    collect_garbage()
    asked = CompileOptionsProto.FromString(options)
    build = asked.executable_build_options
    replicas, partitions = max(build.num_replicas, 1), max(build.num_partitions, 1)
    if (transforms := sys.modules.get("mlirhlo.integrations.jax.transforms")) is not None:
        source = transforms.transformed(source, client.name)
    module = mlirhlo.load(source, "pb").op
    numbers = _assigned(client, asked, replicas * partitions)
    alone = partitions_alone(HloModule(module)) if partitions > 1 else {}
    own = of_one_device(module, build) if len(numbers) > 1 else source
    view = HloModule(module)
    layout = view.program_layout
    program = Program(
        client,
        source,
        options,
        own,
        view.name,
        config_of(view),
        _executable(client, module, asked),
        numbers,
        replicas,
        partitions,
        [leaf for shape in layout.parameters for leaf in leaves(shape)],
        leaves(layout.result),
        alone,
    )
    made = _handle(program)
    program.kept["handle"] = made
    keep(c.addressof(made), program)
    return c.addressof(made)


def _executable(client: Client, module: ModuleOp, options: CompileOptionsProto) -> Executable:
    if client.interpreted:
        return Interpreted(module)

    given = {
        name: getattr(value, value.WhichOneof("value"))
        for name, value in options.env_option_overrides.items()
    }
    return compile_module(module, flags=flags_for(given))


def _assigned(client: Client, options: CompileOptionsProto, count: int) -> list[int]:
    """The devices of a program by number, in the order of replicas, then partitions."""
    build = options.executable_build_options
    if build.HasField("device_assignment"):
        columns = [
            list(one.replica_device_ids) for one in build.device_assignment.computation_devices
        ]
        numbers = [column[r] for r in range(len(columns[0])) for column in columns]
    elif build.device_ordinal >= 0:
        numbers = [build.device_ordinal]
    else:
        first = client.process * client.count if count == 1 else 0
        numbers = list(range(first, first + count))
    if len(numbers) != count or not all(0 <= n < len(client.devices) for n in numbers):
        raise PjrtError(
            Code.INVALID_ARGUMENT,
            f"the program is for devices {numbers}, there are {len(client.devices)}",
        )
    return numbers


def _handle(program: Program) -> Any:
    """The object that JAX holds."""
    memory, results = program.executable.memory, program.results
    kind = c.create_string_buffer(MEMORIES[0].encode())
    count = max(len(results), len(program.parameters), 1)
    templates = [one for device in program.templates for one in device]
    places = [n for number in program.own for n in divmod(number, program.partitions)]
    descriptor = program.executable.descriptor if program.is_native else None
    shapes = [described(leaf) for leaf in results]
    return make(
        "Executable",
        references=1,
        descriptor=c.create_string_buffer(descriptor) if descriptor else None,
        worlds=program.worlds.address if descriptor and program.worlds else 0,
        templates=[c.create_string_buffer(one, len(one)) for one in templates],
        template_sizes=[len(one) for one in templates],
        expected_bytes=[bytes_of(*described(leaf)) for leaf in program.parameters],
        num_parameters=len(program.parameters),
        is_donated=[int(n in program.donated) for n in range(len(program.parameters))],
        executable_name=program.name,
        executable_fingerprint=hashlib.sha256(program.source + program.options).hexdigest(),
        num_replicas=program.replicas,
        num_partitions=program.partitions,
        num_outputs=len(results),
        memory_kinds=[kind] * count,
        memory_kind_sizes=[len(MEMORIES[0])] * count,
        addressable_devices=program.devices,
        output_types=array_of([type_number(name) for name, _ in shapes], c.c_int),
        num_output_types=len(results),
        dims=[dim for _, dims in shapes for dim in dims],
        dim_sizes=[len(dims) for _, dims in shapes],
        addressable_device_logical_ids=array_of(places, c.c_int),
        num_addressable_device_logical_ids=len(program.devices),
        argument_size_in_bytes=memory.parameters,
        output_size_in_bytes=memory.results,
        alias_size_in_bytes=sum(bytes_of(*shapes[n]) for n in program.executable.aliases),
        temp_size_in_bytes=memory.temporaries,
        peak_memory_in_bytes=memory.parameters + memory.results + memory.temporaries,
    )


# ---------------------------------------------------------------- what JAX gets back


_MAGIC = b"mlirhlo program 1\n"


def serialized(program: Program) -> bytes:
    """The program and its options; machine code is made again, or comes from this compiler's cache."""
    size = len(program.options).to_bytes(8, "little")
    return _MAGIC + size + program.options + program.source


def restore(client: Client, data: bytes) -> int:
    """Compiles what `serialized` made; the handle. Raises `PjrtError` for anything else."""
    start = len(_MAGIC) + 8
    size = int.from_bytes(data[len(_MAGIC) : start], "little")
    if not data.startswith(_MAGIC) or start + size > len(data):
        raise PjrtError(Code.INVALID_ARGUMENT, "not an executable that mlirhlo serialised")
    return load(client, data[start + size :], data[start : start + size])


def module_of(program: Program) -> bytes:
    """The module as an HloModuleProtoWithConfig: after all passes, or before them for the thread that compiled it.

    JAX asks right after the compilation, on the compiler's thread, for the shardings of parameters and results, which
    are the same in both. Who asks later wants to see what is executed.
    """
    if threading.get_ident() == program.thread:
        return with_config(program.module, program.config)
    return program.as_optimized


def assignment(program: Program) -> bytes:
    """The devices of a program, as a DeviceAssignmentProto."""
    message = DeviceAssignmentProto(
        replica_count=program.replicas, computation_count=program.partitions
    )
    numbers = program.numbers
    for partition in range(program.partitions):
        column = message.computation_devices.add()
        column.replica_device_ids.extend(numbers[partition :: program.partitions])
    return message.SerializeToString()
