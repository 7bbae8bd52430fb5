"""What a compiler was given: the directory `module_NNNN.NAME/` with program, options and topology.

XLA's clients write it when the directory of dumps comes from the environment; a compilation can be
repeated from it. `xla_dump_to` is taken out, so that a repetition does not dump.
Source: dumps reference, "PJRT compile inputs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import text_encoding, text_format

from mlirhlo.debug.options.known import xla_rows
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.proto.compile_options_pb2 import CompileOptionsProto
from mlirhlo.formats.proto.message import bytes_field, varint
from mlirhlo.formats.stablehlo import print_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.runtime.jit import host

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.writer import ModuleDump
    from mlirhlo.debug.options import Flags
    from mlirhlo.formats.proto.debug_options_pb2 import DebugOptions

_CPU_ID = 17910157233389077760
"""PJRT's number of the platform `cpu`."""


def dump_inputs(dump: ModuleDump, module: ModuleOp, program: ModuleOp | None) -> None:
    """Writes the directory, where it is wanted."""
    if not dump.with_inputs or dump.settings.to_stdout:
        return
    below = (dump.stem(""),)
    binary = dump.options.xla_dump_hlo_as_proto
    dump.write("module.mlir", lambda: program_text(module, program), below=below)
    message = compile_options(module, dump.flags)
    if binary:
        dump.write(
            "compile_options.pb",
            lambda: message.SerializeToString(deterministic=True),
            below=below,
        )
        dump.write("topology.pb", _topology_bytes, below=below)
    else:
        dump.write(
            "compile_options.textproto", lambda: text_format.MessageToString(message), below=below
        )
        dump.write("topology.textproto", _topology_text, below=below)


def program_text(module: ModuleOp, program: ModuleOp | None) -> str:
    """The StableHLO that was handed over; of a module that was HLO, one that computes the same."""
    given = convert_to_stablehlo(module) if program is None else program
    return print_module(given, debug_info=True)


def compile_options(module: ModuleOp, flags: Flags) -> CompileOptionsProto:
    """The options of a compilation for one device, every debug option spelled out."""
    view = HloModule(module)
    message = CompileOptionsProto(profile_version=-1)
    build = message.executable_build_options
    build.device_ordinal = -1
    fill_debug_options(build.debug_options, flags, without=("xla_dump_to",))
    build.num_replicas, build.num_partitions = view.replica_count, view.num_partitions
    build.process_count = 1
    assignment = build.device_assignment
    assignment.replica_count, assignment.computation_count = (
        view.replica_count,
        view.num_partitions,
    )
    for partition in range(view.num_partitions):
        devices = assignment.computation_devices.add()
        devices.replica_device_ids.extend(
            replica * view.num_partitions + partition for replica in range(view.replica_count)
        )
    return message


def fill_debug_options(
    message: DebugOptions, flags: Flags, *, without: tuple[str, ...] = ()
) -> None:
    """Sets the fields of XLA's message that are given, or have a default that is not nothing."""
    fields = message.DESCRIPTOR.fields_by_name
    for name, row in xla_rows().items():
        value = flags.given.get(name, row.default)
        if name in without or value is None or (name not in flags.given and not value):
            continue
        member: Any = fields[name]
        if row.type == "map":
            for pair in value if isinstance(value, tuple) else ():
                key, _, text = pair.partition("=")
                getattr(message, name)[key] = text
        elif row.type.startswith("enum"):
            numbers = member.enum_type.values_by_name
            names = value if isinstance(value, tuple) else (str(value),)
            known = [numbers[n].number for n in names if n in numbers]
            if isinstance(value, tuple):
                getattr(message, name).extend(known)
            elif known:
                setattr(message, name, known[0])
        elif isinstance(value, tuple):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)


# ---------------------------------------------------------------- topology


def _target() -> bytes:
    """XLA's CpuTopologyProto of this machine."""
    cpu = host()
    machine = bytes_field(1, b"x86_64-unknown-linux-gnu")
    machine += bytes_field(2, cpu.name.encode()) + bytes_field(3, cpu.features.encode())
    return bytes_field(1, b"") + bytes_field(5, machine)


_ANY_URL = "type.googleapis.com/xla.CpuTopologyProto"


def _topology_text() -> str:
    value = text_encoding.CEscape(_target(), as_utf8=False)
    return (
        f'platform_id: {_CPU_ID}\nplatform_name: "cpu"\nplatform_version: "cpu"\n'
        f'platform_specific_topology {{\n  type_url: "{_ANY_URL}"\n  value: "{value}"\n}}\n'
    )


def _topology_bytes() -> bytes:
    packed = bytes_field(1, _ANY_URL.encode()) + bytes_field(2, _target())
    platform = b"\x08" + varint(_CPU_ID) + bytes_field(2, b"cpu") + bytes_field(3, b"cpu")
    return platform + bytes_field(4, packed)
