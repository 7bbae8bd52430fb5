"""The hlo dialect to HloModuleProto, as XLA writes it.

Ids, orders and the messages that XLA always writes follow XLA, so that a module read from text gives the
bytes that XLA gives for the same text; what a module was read with from a proto (`proto_id`,
`proto_rest`, `storage_order`) is written again. Source: HLO protobuf reference, "Ids", table 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import Place, error
from mlirhlo.dialects.hlo.attributes.base import int_of, ints, str_of
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import printed_names
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.formats.hlo_text.options import ComputationOrder
from mlirhlo.formats.hlo_text.printer_order import computation_order, fused_computations
from mlirhlo.formats.proto.header import (
    computation_chunks,
    module_head,
    payload_context,
)
from mlirhlo.formats.proto.instructions import Ids, instruction_bytes
from mlirhlo.formats.proto.message import bytes_field, insert, join, varint
from mlirhlo.formats.proto.module_pb2 import HloModuleProto
from mlirhlo.formats.proto.rest import restore
from mlirhlo.formats.proto.rows import Row, row_of

_LOW = 0xFFFF_FFFF


def encode_module(module: ModuleOp, *, keep_config: bool = True) -> HloModuleProto:
    """The message of a module.

    With `keep_config`, header attributes that HloModuleProto has no field for go into its
    `backend_config`; without, the message is exactly XLA's. Raises `HloError` HLO0208 for what a
    proto cannot say, naming the instruction.
    """
    with paused_gc():
        data = module_bytes(HloModule(module), keep_config=keep_config)
    try:
        return HloModuleProto.FromString(data)
    except DecodeError:
        # The rest of a module can only be damaged by hand.
        raise error(
            "HLO0208",
            "the module has a name or attribute that is not UTF-8 text, or a damaged proto_rest",
        ) from None


def module_bytes(module: HloModule, *, keep_config: bool = True) -> bytes:
    """The serialised message of a module."""
    return _ModuleEncoder(module).encode(keep_config)


class _ModuleEncoder:
    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.context = payload_context(module)
        self.computations = module.by_name()
        self.lists = {name: instruction_list(c) for name, c in self.computations.items()}
        self.names = names_of(module)
        self.computation_ids = _computation_ids(list(self.computations.values()))
        self.value_ids: dict[int, bytes] = {}
        self.sequences: dict[int, list[bytes]] = {}
        self.fused = fused_computations(self.lists)

    def encode(self, keep_config: bool) -> bytes:
        for name in self.computations:
            self._number(name)
        written = computation_order(self.computations, self.lists, ComputationOrder.KEPT)
        parts = [bytes_field(3, self._computation(computation)) for computation in written]
        head = module_head(
            self.module,
            self.context,
            self.computation_ids,
            self.sequences,
            encode_module,
            keep_config=keep_config,
        )
        rest = self.module.get("proto_rest")
        return insert(head if rest is None else restore(head, str_of(rest)), 3, parts)

    def _number(self, name: str) -> None:
        """Ids of instructions: those they were read with if they still fit, else free ones."""
        own, instructions = self.computation_ids[name], self.lists[name]
        taken: set[int] = set()
        kept: dict[int, int] = {}
        for op in instructions:
            proto_id = op.properties.get("proto_id")
            if proto_id is None:
                continue
            full = int_of(proto_id)
            if full >= 0 and full >> 32 in (own, 0) and full & _LOW not in taken:
                taken.add(full & _LOW)
                kept[id(op)] = full
        free = max(taken, default=0) + 1
        sequence: list[bytes] = []
        for position, op in enumerate(instructions):
            full = kept.get(id(op), -1)
            if full < 0:
                low = position
                if low in taken:
                    free = max(free, len(instructions))
                    low, free = free, free + 1
                full = own << 32 | low
            written = self.value_ids[id(op.results[0])] = varint(full)
            sequence.append(written)
        if name not in self.fused:
            self.sequences[own] = sequence

    def _computation(self, computation: ComputationOp) -> bytes:
        ids = Ids(self.value_ids, self.computation_ids)
        name = computation.computation_name
        instructions = self.lists[name]
        order = ints(computation.storage_order)
        if len(order) == len(instructions):
            written = [instructions[place] for place in order]
        else:
            written = post_order(instructions)
        parts = [bytes_field(2, self._instruction(op, ids)) for op in written]
        chunks = computation_chunks(
            computation,
            self.computation_ids[name],
            self.value_ids[id(computation.root.results[0])],
            is_fused=name in self.fused,
        )
        data = join(chunks)
        if computation.proto_rest is not None:
            data = restore(data, str_of(computation.proto_rest))
        return insert(data, 2, parts)

    def _instruction(self, op: Instruction, ids: Ids) -> bytes:
        row = row_of(op.opcode.name)
        assert isinstance(row, Row)
        name = self.names.get(id(op)) or op.instruction_name or ""
        if "raw_attributes" in op.properties:
            raise error(
                "HLO0208",
                f"attributes {str_of(op.properties['raw_attributes'])} are unknown",
                Place("<module>", what=name),
                help="write HLO or MLIR text, which carry them as they stand",
            )
        data = instruction_bytes(op, name, row, ids, self.context)
        rest = op.properties.get("proto_rest")
        return data if rest is None else restore(data, str_of(rest))


def _computation_ids(computations: Sequence[ComputationOp]) -> dict[str, int]:
    """Those they were read with if they still fit, else their positions, else free ones."""
    ids: dict[str, int] = {}
    taken: set[int] = set()
    for computation in computations:
        number = -1 if computation.proto_id is None else int_of(computation.proto_id)
        if number >= 0 and number not in taken:
            ids[computation.computation_name] = number
            taken.add(number)
    free = 0
    for position, computation in enumerate(computations):
        name = computation.computation_name
        if name in ids:
            continue
        number = position
        if number in taken:
            free = max(free, len(computations))
            while free in taken:
                free += 1
            number = free
        taken.add(number)
        ids[name] = number
    return ids


def names_of(module: HloModule) -> dict[int, str]:
    """Names by identity, for the instructions that have none, and for those that have the name of an earlier one: XLA's
    loader refuses a module in which two have one name."""
    instructions = list(module.instructions)
    own = [(op.instruction_name, op.opcode.name) for op in instructions]
    if len({name for name, _ in own if name is not None}) == len(own):
        return {}
    return {
        id(op): name
        for op, name in zip(instructions, printed_names(own), strict=True)
        if name != op.instruction_name
    }
