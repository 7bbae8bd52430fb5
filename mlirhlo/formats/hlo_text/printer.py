"""HLO text from the hlo dialect, byte for byte as XLA prints it.

Source: HLO text, "Printing". Texts of types and attributes are kept by identity while one module
is printed, because a dump of 100,000 instructions has some hundred different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import int_of, str_of, symbols_of
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import are_read_as_spelled, printed_names
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.syntax import quote
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.formats.hlo_text.options import PrintOptions, Subcomputations
from mlirhlo.formats.hlo_text.printer_async import AsyncSugar
from mlirhlo.formats.hlo_text.printer_attributes import AttributeWriter, default_text
from mlirhlo.formats.hlo_text.printer_header import print_header
from mlirhlo.formats.hlo_text.printer_order import computation_order, fused_computations

_COMPACT_OPERANDS = 4
_NAMED_BRACE_INSTRUCTIONS = 5


def print_module(module: ModuleOp, options: PrintOptions | None = None) -> str:
    """Text of a module. Raises `HloError` HLO0080 when bodies are asked for and calls go in circles."""
    return ModulePrinter(HloModule(module), options or PrintOptions()).module_text()


def print_computation(computation: ComputationOp, options: PrintOptions | None = None) -> str:
    """Text of one computation, without the empty line that follows it in a module."""
    printer = ModulePrinter(_module_of(computation), options or PrintOptions())
    return printer.computation_text(computation)


def print_instruction(op: Instruction, options: PrintOptions | None = None) -> str:
    """Text of one instruction, without `ROOT` and indentation."""
    printer = ModulePrinter(_module_of(op), options or PrintOptions())
    if printer.options.canonical_names and isinstance(op.parent_op(), ComputationOp):
        printer.number(printer.ordered(cast(ComputationOp, op.parent_op())))
    printer.prepare_bodies(op, 0)
    return printer.instruction_text(op, 0)


def _module_of(op: Instruction | ComputationOp) -> HloModule:
    """The module around `op`; an empty one for a detached op."""
    around = op.parent_op()
    while around is not None and not isinstance(around, ModuleOp):
        around = around.parent_op()
    return HloModule(around if isinstance(around, ModuleOp) else ModuleOp([]))


def _spelled(names: list[str]) -> dict[str, str]:
    """Computations whose names are printed otherwise, so that they read as they are printed."""
    if are_read_as_spelled(names):
        return {}
    return dict(zip(names, printed_names([(name, "") for name in names]), strict=True))


class ModulePrinter:
    """Prints one module under one set of options."""

    def __init__(self, module: HloModule, options: PrintOptions) -> None:
        self.module, self.options = module, options
        self.by_name = module.by_name()
        self.lists = {name: instruction_list(c) for name, c in self.by_name.items()}
        self.is_scheduled = module.is_scheduled
        self.fused = fused_computations(self.lists) if self.is_scheduled else set[str]()
        self.attributes = AttributeWriter(options, module.stack_frames)
        self.common = self.attributes.common | {"raw_attributes", "control_predecessors"}
        self.sugar = AsyncSugar(self.by_name, self.lists) if options.async_sugar else None
        self.percent = "%" if options.percent else ""
        self.spelled = _spelled(list(self.by_name))
        self.names: dict[int, str] | None = self._names()
        # A detached op belongs to no module, so its names were not looked at.
        has_names = self.names is None and bool(self.lists)
        self.is_plain = has_names and options.ids and not options.canonical_names
        """Whether instructions are printed under the names they have in the IR."""
        self.references: dict[int, str] | None = None
        """The same where some have names of the printer's, by result; None = there is no such list."""
        if self.names is not None and options.ids and not options.canonical_names:
            self.references = {key: self.percent + name for key, name in self.names.items()}
        self.has_plain_operands = (
            options.operand_names and not options.operand_shapes and not options.compact_operands
        )
        self.canonical: dict[int, str] = {}
        self._shapes: dict[int, str] = {}
        self._bodies: dict[tuple[str, int], str] = {}

    def _names(self) -> dict[int, str] | None:
        """Names by result where some are missing or clash; None when those of the IR will do."""
        values = [value for ops in self.lists.values() for op in ops for value in op.results]
        own = [value._name for value in values]  # pyright: ignore[reportPrivateUsage]
        if None not in own and are_read_as_spelled(cast("list[str]", own)):
            return None
        opcodes = [cast(Instruction, value.op).opcode.name for value in values]
        names = printed_names(list(zip(own, opcodes, strict=True)))
        return {id(value): name for value, name in zip(values, names, strict=True)}

    # -------------------------------------------------------------- module

    def module_text(self) -> str:
        options = self.options
        pad = "  " * options.indent
        pieces = [pad + print_header(self.module, options), "\n\n"]
        if options.metadata:
            frames = self.module.stack_frames
            if frames is not None and frames.stack_frames:
                pieces += [str(frames), "\n"]
        for computation in computation_order(self.by_name, self.lists, options.computation_order):
            if self.sugar is not None and computation.computation_name in self.sugar.hidden:
                continue
            pieces += [self.computation_text(computation), "\n\n"]
        return "".join(pieces)

    def ordered(self, computation: ComputationOp) -> list[Instruction]:
        """Instructions in print order."""
        if self.options.stored_instruction_order or (
            self.is_scheduled and computation.computation_name not in self.fused
        ):
            return self._list(computation)
        return post_order(self._list(computation))

    def _list(self, computation: ComputationOp) -> list[Instruction]:
        found = self.lists.get(computation.computation_name)
        return instruction_list(computation) if found is None else found

    # -------------------------------------------------------------- computation

    def computation_text(self, computation: ComputationOp) -> str:
        options = self.options
        if options.subcomputations is Subcomputations.BODIES:
            self.prepare_bodies(computation, options.indent)
        pad = "  " * options.indent
        head = "ENTRY " if computation.is_entry is not None else ""
        name = computation.computation_name if options.ids else ""
        name = self.spelled.get(name, name)
        if name or options.percent:
            head += self.percent + name + (" " if name else "")
        block = self._block(computation, self.ordered(computation), options.indent)
        text = pad + head + self._signature(computation) + block
        if (
            options.name_after_closing_brace
            and options.ids
            and len(self._list(computation)) > _NAMED_BRACE_INSTRUCTIONS
        ):
            text += f" // {computation.computation_name}"
        return text

    def _signature(self, computation: ComputationOp) -> str:
        if not self.options.program_shape:
            return ""
        parameters = [op for op in self._list(computation) if isinstance(op, ParameterOp)]
        texts = ", ".join(
            f"{self._own_name(p.results[0])}: {p.shape.to_string(False)}"
            for p in sorted(parameters, key=lambda op: op.parameter_number)
        )
        return f"({texts}) -> {computation.root.shape.to_string(False)} "

    def _own_name(self, value: SSAValue) -> str:
        """Name of an instruction though names be canonical."""
        name = value._name if self.names is None else self.names.get(id(value))  # pyright: ignore[reportPrivateUsage]
        if name is None:
            name = cast(Instruction, value.owner).opcode.name
        return name if self.options.ids else name.partition(".")[0]

    def _block(self, computation: ComputationOp, order: Sequence[Instruction], level: int) -> str:
        """`{`, the instructions, and `}` with the execution thread."""
        if self.options.canonical_names:
            self.number(order)
        root = computation.root
        pad = "  " * (level + 1)
        lines = ["{"]
        for op in order:
            text = self.instruction_text(op, level + 1)
            lines.append(f"{pad}ROOT {text}" if op is root else pad + text)
        end = "  " * level + "}"
        if computation.thread != "main" and self.options.ids:
            end += f", execution_thread={quote(computation.thread)}"
        lines.append(end)
        return "\n".join(lines)

    def number(self, order: Sequence[Instruction]) -> None:
        """Gives canonical names to the instructions of one computation."""
        for place, op in enumerate(order):
            self.canonical[id(op.results[0])] = f"tmp_{place}"

    def prepare_bodies(self, caller: ComputationOp | Instruction, level: int) -> None:
        """Formats the bodies that `caller` shows when its own text stands at `level`."""
        if self.options.subcomputations is not Subcomputations.BODIES:
            return
        stack = [
            (name, level + isinstance(caller, ComputationOp)) for name in self._callees(caller)
        ]
        open_: set[str] = set()
        while stack:
            key = name, depth = stack[-1]
            if key in self._bodies or name not in self.by_name:
                stack.pop()
                continue
            missing = [(callee, depth + 1) for callee in self._callees(self.by_name[name])]
            missing = [other for other in missing if other not in self._bodies]
            if name in open_ or not missing:
                if missing:
                    raise error(
                        "HLO0080",
                        f"computation {name} calls itself, so its calls cannot be printed in full",
                        help="print with names of computations instead of their bodies",
                    )
                stack.pop()
                open_.discard(name)
                computation = self.by_name[name]
                pad = "  " * depth
                # A body is not printed in schedule order, though its computation be scheduled.
                block = self._block(computation, post_order(self.lists[name]), depth)
                self._bodies[key] = pad + self._signature(computation) + block
            else:
                open_.add(name)
                stack += missing

    def _callees(self, caller: ComputationOp | Instruction) -> list[str]:
        ops = [caller] if isinstance(caller, Instruction) else self._list(caller)
        found: dict[str, None] = {}
        for op in ops:
            if op.calling_keys:
                wrapped = self.sugar.wrapped(op) if self.sugar is not None else None
                for name in op.called_computations:
                    found[name] = None
                for name in wrapped.called_computations if wrapped is not None else ():
                    found[name] = None
        return [name for name in found if name in self.by_name]

    # -------------------------------------------------------------- instruction

    def instruction_text(self, op: Instruction, level: int) -> str:
        options = self.options
        (value,) = op.results
        name = self._reference(value)
        shape = ""
        if options.result_shapes:
            type_ = value._type  # pyright: ignore[reportPrivateUsage]
            shape = self._shapes.get(id(type_)) or self._shape(type_)
        properties = op.properties
        row = op.opcode
        opcode = row.name
        wrapped = None if self.sugar is None else self.sugar.wrapped(op)
        if wrapped is not None:
            opcode = wrapped.opcode.name + opcode.removeprefix("async")
        if opcode == "constant":
            operands = self._literal(properties.get("literal"))
        elif opcode == "parameter":
            number = properties.get("parameter_number")
            operands = str(int_of(number)) if options.parameter_numbers else ""
        else:
            operands = self._operands(op.inputs)
        head = (
            f"{name} = {shape} {opcode}({operands})" if shape else f"{name} = {opcode}({operands})"
        )
        is_common = not self.common.isdisjoint(properties)
        if not row.attributes and not is_common:
            return head
        pieces = [head]
        if row.attributes:
            self.row_attributes(op, pieces, level, hides_calls=wrapped is not None)
            if wrapped is not None and row.name == "async-start":
                if options.extra_attributes:
                    self.row_attributes(wrapped, pieces, level)
                if options.subcomputations is Subcomputations.BODIES:
                    self._calls("calls", op.called_computations, pieces, level)
        if is_common:
            self._common_attributes(op, properties, pieces)
        return "".join(pieces)

    def _common_attributes(
        self, op: Instruction, properties: dict[str, Attribute], pieces: list[str]
    ) -> None:
        raw = properties.get("raw_attributes")
        if raw is not None:
            pieces.append(", " + str_of(raw))
        for key, write in self.attributes.before:
            attribute = properties.get(key)
            if attribute is not None:
                pieces.append(write(attribute))
        if "control_predecessors" in properties and self.options.control_predecessors:
            # Real names, also where instructions have canonical ones.
            names = ", ".join(self.percent + self._own_name(v) for v in op.control_predecessors)
            pieces.append(f", control-predecessors={{{names}}}")
        for key, write in self.attributes.after:
            attribute = properties.get(key)
            if attribute is not None:
                if (
                    key == "backend_config"
                    and not self.options.custom_call_bodies
                    and op.opcode.name == "custom-call"
                ):
                    pieces.append(", backend_config={...}")
                    continue
                pieces.append(write(attribute))

    def row_attributes(
        self, op: Instruction, pieces: list[str], level: int, hides_calls: bool = False
    ) -> None:
        properties = op.properties
        for spec, key, write in self.attributes.row(op.opcode):
            attribute = properties.get(key)
            if write is None:
                if attribute is not None and not hides_calls:
                    is_body = self.options.subcomputations is Subcomputations.BODIES
                    word = (is_body and spec.body_key) or spec.key
                    is_list = spec.kind.name == "computations"
                    self._calls(word, symbols_of(attribute), pieces, level, is_list)
            elif attribute is not None:
                pieces.append(write(attribute))
            elif spec.always or spec.required:
                pieces.append(default_text(op, spec))

    def _calls(
        self, word: str, names: Sequence[str], pieces: list[str], level: int, is_list: bool = False
    ) -> None:
        mode = self.options.subcomputations
        if mode is Subcomputations.NAMES:
            text = ", ".join(self.percent + self.spelled.get(name, name) for name in names)
            pieces.append(f", {word}={{{text}}}" if is_list else f", {word}={text}")
        elif mode is Subcomputations.BODIES:
            bodies = ",\n".join(self._bodies.get((name, level), name) for name in names)
            # The brace that closes a list of bodies stands in the first column at every level.
            pieces.append(f", {word}={{\n{bodies}\n}}" if is_list else f", {word}=\n{bodies}")

    def _literal(self, attribute: Attribute | None) -> str:
        if attribute is None:
            return "{...}"
        literal: Literal = cast(Any, attribute).data
        if self.options.essential_constants:
            return literal.to_essential_text()
        return literal.to_text(self.options.large_constants)

    def _operands(self, values: Sequence[SSAValue]) -> str:
        options = self.options
        if self.has_plain_operands:
            if self.is_plain:
                percent = self.percent
                texts = [f"{percent}{v._name}" for v in values]  # pyright: ignore[reportPrivateUsage]
            elif self.references is not None:
                known = self.references
                texts = [known.get(id(v)) or self._reference(v) for v in values]
            else:
                texts = list(map(self._reference, values))
            step = options.operand_index_interval
            if not step or len(texts) <= step:
                return ", ".join(texts)
        else:
            texts = list(map(self._operand, values))
        if options.compact_operands and len(texts) > _COMPACT_OPERANDS:
            texts[_COMPACT_OPERANDS:] = [f"...(+{len(texts) - _COMPACT_OPERANDS})"]
        step = options.operand_index_interval
        if step and len(texts) > step and not options.compact_operands:
            for index in range(step, len(texts), step):
                texts[index] = f"/*index={index}*/{texts[index]}"
        return ", ".join(texts)

    def _operand(self, value: SSAValue) -> str:
        options = self.options
        words: list[str] = []
        if options.operand_shapes:
            words.append(self._shape(value.type))
        if options.canonical_names or options.operand_names:
            words.append(self._reference(value))
        return " ".join(words)

    def _reference(self, value: SSAValue) -> str:
        """How operands refer to an instruction."""
        if self.is_plain:
            return f"{self.percent}{value._name}"  # pyright: ignore[reportPrivateUsage]
        if self.references is not None and (text := self.references.get(id(value))) is not None:
            return text
        if self.options.canonical_names:
            name = self.canonical.get(id(value))
            if name is not None:
                return name
        return self.percent + self._own_name(value)

    def _shape(self, type_: Attribute) -> str:
        text = self._shapes.get(id(type_))
        if text is None:
            shape: Shape = shape_of(type_)
            text = self._shapes[id(type_)] = shape.to_string(self.options.layouts)
        return text
