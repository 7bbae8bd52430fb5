"""HloModuleProto to the hlo dialect.

What the IR has no place for is kept (`rest.py`), so `encode_module` gives back an equal message. Errors
name the instruction and never end in a traceback: the message may come from anywhere.
Source: HLO protobuf reference, "HloModuleProto", "HloComputationProto", "Ids".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Region, SSAValue

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.base import integer, integers, string
from mlirhlo.dialects.hlo.build import append, create, paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer, legal_name
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.order import post_order
from mlirhlo.formats.hlo_text.printer_order import fused_computations
from mlirhlo.formats.proto.config_pb2 import HloModuleConfigProto
from mlirhlo.formats.proto.context import Context
from mlirhlo.formats.proto.encode import encode_module
from mlirhlo.formats.proto.header import (
    computation_chunks,
    module_head,
    payload_context,
    read_config,
    read_header,
)
from mlirhlo.formats.proto.instructions import (
    Ids,
    instruction_bytes,
    read_calls,
    read_properties,
)
from mlirhlo.formats.proto.message import DecodeProblem, join, varint, without
from mlirhlo.formats.proto.module_pb2 import (
    HloComputationProto,
    HloInstructionProto,
    HloModuleProto,
)
from mlirhlo.formats.proto.rest import difference
from mlirhlo.formats.proto.rows import row_of

_LOW = 0xFFFF_FFFF
_MOST_COMPUTATIONS = 0x7FFF_FFFF
"""Ids of computations stand in the upper half of ids of instructions."""


def decode_module(
    proto: HloModuleProto,
    file: str = "<proto>",
    config: HloModuleConfigProto | None = None,
) -> ModuleOp:
    """The module in a message; `config` (of HloModuleProtoWithConfig) fills header attributes.

    Raises `HloError` with a code from HLO0206 to HLO0217 that names the instruction.
    """
    with paused_gc():
        return _ModuleDecoder(proto, file).decode(config)


class _ModuleDecoder:
    def __init__(self, proto: HloModuleProto, file: str) -> None:
        self.proto, self.file = proto, file
        self.context = Context.of(proto.payloads)
        self.knows_every_field = _knows_every_field(proto)
        self.context.may_be_newer = not self.knows_every_field
        self.names: dict[int, str] = {}
        """Computations decoded so far, by id."""
        self.ids = Ids({}, {})
        self.uniquer = NameUniquer()
        self.computations: list[ComputationOp] = []
        self.fulls: dict[int, int] = {}
        """Full ids, as they are written again, of the instructions of this computation so far."""
        self.lists: dict[str, list[Instruction]] = {}
        """Instructions of every computation, in block order."""

    def problem(self, code: str, message: str, what: str, help: str | None = None) -> HloError:
        return DecodeProblem(code, message, help).at(self.file, what)

    def decode(self, config: HloModuleConfigProto | None) -> ModuleOp:
        proto = self.proto
        for computation in proto.computations:
            self.computations.append(self._computation(computation))
        op = ModuleOp(self.computations)
        module = HloModule(op)
        if proto.name:
            op.properties["sym_name"] = string(legal_name(proto.name))
        entry = self.names.get(proto.entry_computation_id)
        if entry is None:
            raise self.problem(
                "HLO0212",
                f"no computation has the entry's id {proto.entry_computation_id}",
                proto.name,
            )
        marked = next(c for c in self.computations if c.computation_name == entry)
        marked.properties["is_entry"] = UnitAttr()
        try:
            read_header(module, proto, self.context, decode_module)
            if config is not None:
                read_config(module, config)
        except DecodeProblem as problem:
            raise problem.at(self.file, proto.name) from None
        self._keep_rests(module)
        return op

    def _keep_rests(self, module: HloModule) -> None:
        """Remembers what the fields around the instructions say beyond the IR."""
        fused = fused_computations(self.lists)
        values = self.ids.values
        sequences: dict[int, list[bytes]] = {}
        for computation, proto in zip(self.computations, self.proto.computations, strict=True):
            is_fused = computation.computation_name in fused
            if not is_fused:
                ops = self.lists[computation.computation_name]
                sequences[proto.id] = [values[id(op.results[0])] for op in ops]
            root_id = values[id(computation.root.results[0])]
            chunks = computation_chunks(computation, proto.id, root_id, is_fused=is_fused)
            original = self._head(proto)
            rest = difference(join(chunks), original)
            if rest is not None:
                computation.properties["proto_rest"] = string(rest)
        ids = self.ids.computations
        head = module_head(module, payload_context(module), ids, sequences, encode_module)
        original = without(self.proto.SerializeToString(deterministic=True), 3)
        rest = difference(head, original)
        if rest is not None:
            module.set("proto_rest", string(rest))

    def _head(self, proto: HloComputationProto) -> bytes:
        """The serialised computation without its instructions."""
        if not self.knows_every_field:
            return without(proto.SerializeToString(deterministic=True), 2)
        shape = proto.program_shape if proto.HasField("program_shape") else None
        head = HloComputationProto(
            name=proto.name,
            program_shape=shape,
            id=proto.id,
            root_id=proto.root_id,
            is_fusion_computation=proto.is_fusion_computation,
            execution_thread=proto.execution_thread,
            backend_config=proto.backend_config,
        )
        return head.SerializeToString(deterministic=True)

    # Computations -------------------------------------------------------------------------

    def _computation(self, proto: HloComputationProto) -> ComputationOp:
        if proto.id in self.names:
            raise self.problem("HLO0212", f"two computations have the id {proto.id}", proto.name)
        if not 0 <= proto.id <= _MOST_COMPUTATIONS:
            raise self.problem("HLO0212", f"{proto.id} is no id of a computation", proto.name)
        by_low = {instruction.id & _LOW: instruction for instruction in proto.instructions}
        if len(by_low) != len(proto.instructions):
            raise self._repeated_id(proto)
        if proto.root_id & _LOW not in by_low:
            raise self.problem(
                "HLO0212", f"no instruction has the root's id {proto.root_id & _LOW}", proto.name
            )
        order = self._schedule(proto, by_low)
        block = Block()
        results: dict[int, SSAValue] = {}
        self.fulls.clear()
        numbers: list[int] = []
        for position, low in enumerate(order):
            instruction = by_low[low]
            try:
                op = self._instruction(instruction, proto.id, results)
            except DecodeProblem as problem:
                where = f"{proto.name}.{instruction.name}" if instruction.name else proto.name
                raise problem.at(self.file, where) from None
            full = self.fulls[low]
            if full != (proto.id << 32 | position):
                op.properties["proto_id"] = integer(full)
            if instruction.opcode == "parameter":
                numbers.append(instruction.parameter_number)
            append(block, op)
            results[low] = op.results[0]
        self._check_parameters(proto, numbers)
        block.add_op(ReturnOp.create(operands=[results[proto.root_id & _LOW]]))
        name = self.uniquer.unique(legal_name(proto.name))
        computation = ComputationOp.create(
            properties={"sym_name": string(name)}, regions=[Region(block)]
        )
        if proto.execution_thread:
            computation.properties["execution_thread"] = string(proto.execution_thread)
        if proto.id != len(self.names):
            computation.properties["proto_id"] = integer(proto.id)
        self.names[proto.id] = name
        self.ids.computations[name] = proto.id
        self.lists[name] = [cast(Instruction, result.owner) for result in results.values()]
        self._keep_stored_order(proto, computation, order, results)
        return computation

    def _repeated_id(self, proto: HloComputationProto) -> HloError:
        names: dict[int, str] = {}
        for instruction in proto.instructions:
            low = instruction.id & _LOW
            if low in names:
                both = f"{names[low]} and {instruction.name}"
                message = f"two instructions have the id {low}: {both}"
                return self.problem("HLO0212", message, f"{proto.name}.{instruction.name}")
            names[low] = instruction.name
        raise AssertionError("no id is repeated")

    def _schedule(
        self, proto: HloComputationProto, by_low: dict[int, HloInstructionProto]
    ) -> Sequence[int]:
        """Low ids in block order: the schedule's if there is one, else the stored order."""
        if proto.id not in self.proto.schedule.sequences:
            return list(by_low)
        ids = self.proto.schedule.sequences[proto.id].instruction_ids
        if not ids:
            # The TPU compiler keeps a sequence for each fused computation, without an order.
            return list(by_low)
        order = [full & _LOW for full in ids]
        if len(order) != len(by_low) or set(order) != by_low.keys():
            raise self.problem(
                "HLO0217",
                f"the schedule orders {len(set(order) & by_low.keys())} of {len(by_low)} instructions",
                proto.name,
            )
        return order

    def _keep_stored_order(
        self,
        proto: HloComputationProto,
        computation: ComputationOp,
        order: Sequence[int],
        results: Mapping[int, SSAValue],
    ) -> None:
        """Remembers the proto's order where it is not the one XLA would write."""
        stored = [results[instruction.id & _LOW].owner for instruction in proto.instructions]
        if stored != post_order(self.lists[computation.computation_name]):
            place = {low: position for position, low in enumerate(order)}
            places = [place[instruction.id & _LOW] for instruction in proto.instructions]
            computation.properties["storage_order"] = integers(tuple(places))

    def _check_parameters(self, proto: HloComputationProto, numbers: Sequence[int]) -> None:
        numbers = sorted(numbers)
        if numbers != list(range(len(numbers))):
            raise self.problem(
                "HLO0214",
                f"parameter numbers are {', '.join(map(str, numbers[:20]))};"
                f" they must be 0 to {len(numbers) - 1}, each once",
                proto.name,
            )

    # Instructions -------------------------------------------------------------------------

    def _instruction(
        self, proto: HloInstructionProto, own: int, results: dict[int, SSAValue]
    ) -> Instruction:
        """The instruction; `own` is the id of its computation."""
        row = row_of(proto.opcode)
        if row is None:
            raise DecodeProblem("HLO0211", f"unknown opcode: {proto.opcode}")
        if not proto.HasField("shape"):
            raise DecodeProblem("HLO0213", f"{proto.opcode} has no shape")
        shape, type_, is_exact_shape = self.context.shape(proto.shape.SerializeToString())
        fulls = self.fulls
        operands: list[SSAValue] = []
        is_exact_reference = True
        for number in proto.operand_ids:
            low = number & _LOW
            operand = results.get(low)
            if operand is None:
                raise _not_earlier(low)
            operands.append(operand)
            # Old files leave out the upper half in some references.
            is_exact_reference = is_exact_reference and fulls[low] == number
        properties, is_exact = read_properties(proto, row, shape, operands, self.context)
        if row.calls or row.opcode.name == "conditional":
            names = [self._callee(number) for number in proto.called_computation_ids]
            properties.update(read_calls(names, row, operands))
        elif proto.called_computation_ids:
            is_exact = False
        full = _full_id(proto.id, own)
        fulls[full & _LOW] = full
        if proto.control_predecessor_ids:
            for number in proto.control_predecessor_ids:
                operand = results.get(number & _LOW)
                if operand is None:
                    raise _not_earlier(number & _LOW)
                operands.append(operand)
            properties[CONTROL_PREDECESSORS] = integer(len(proto.control_predecessor_ids))
            is_exact = False
        name = legal_name(proto.name)
        op = create(row.cls, operands, type_, properties, name)
        self.ids.values[id(op.results[0])] = varint(full)
        if (
            is_exact
            and is_exact_shape
            and self.knows_every_field
            and name == proto.name
            and full == proto.id
            and is_exact_reference
        ):
            return op
        written = instruction_bytes(op, name, row, self.ids, self.context)
        original = proto.SerializeToString(deterministic=True)
        if written != original:
            rest = difference(written, original)
            if rest is not None:
                properties["proto_rest"] = string(rest)
        return op

    def _callee(self, number: int) -> str:
        found = self.names.get(number)
        if found is None:
            raise DecodeProblem(
                "HLO0212",
                f"called computation {number} is not an earlier computation",
                help="callees stand before their callers",
            )
        return found


def _full_id(number: int, own: int) -> int:
    """The id as it is written again: its upper half is the computation's id, or 0 in old files."""
    return number if number >> 32 in (own, 0) else own << 32 | number & _LOW


def _not_earlier(low: int) -> DecodeProblem:
    return DecodeProblem(
        "HLO0212",
        f"operand or predecessor {low} is not an earlier instruction",
        help="operands stand before their users, in the schedule too",
    )


def _knows_every_field(proto: HloModuleProto) -> bool:
    """Whether there is no unknown field anywhere in the message."""
    known = HloModuleProto()
    known.CopyFrom(proto)
    known.DiscardUnknownFields()
    return known.ByteSize() == proto.ByteSize()
