"""The conversion's machinery: computations in progress, names, regions, functions.

Names follow XLA's importer (observed on jaxlib 0.10.2): an instruction is called after the last
part of its `op_name`, else after its opcode. It takes a number when it is made, and another one
when its computation is complete; computations are numbered in the order of their completion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr, UnitAttr, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from mlirhlo.dialects.hlo.attributes.annotations import MetadataAttr
from mlirhlo.dialects.hlo.attributes.base import integer, symbol
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.build import append, close, create
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.rewrites.stablehlo_to_hlo.locations import Locations, without_frame
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem
from mlirhlo.rewrites.stablehlo_to_hlo.types import TypeProblem, hlo_shape

Handler: TypeAlias = "Callable[[Operation, Body], Sequence[SSAValue]]"
"""Emits the instructions of one op and returns the values of its results."""

HANDLERS: dict[str, Handler] = {}
"""How each op converts, by its name."""


def lowers(*names: str) -> Callable[[Handler], Handler]:
    """Registers a handler for ops of these names."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


class Body:
    """A computation in progress."""

    __slots__ = ("base", "block", "common", "exporter", "name", "ops", "values")

    def __init__(self, exporter: Exporter, name: str) -> None:
        self.exporter = exporter
        self.name = name
        self.block = Block()
        self.ops: list[Instruction] = []
        self.values: dict[SSAValue, SSAValue] = {}
        """What each value of the program is in this computation."""
        self.base: str | None = None
        """Name of the instructions being emitted; None: their opcode."""
        self.common: dict[str, Attribute] = {}
        """Properties every instruction being emitted carries."""

    # -------------------------------------------------------------- emitting

    def emit(
        self,
        opcode: str,
        operands: Sequence[SSAValue],
        shape: Shape,
        properties: Mapping[str, Attribute] | None = None,
        *,
        base: str | None = None,
    ) -> SSAValue:
        """Appends an instruction and returns its value. `base` is its name where nothing else is."""
        own = {**(properties or {}), **self.common}
        name = self.exporter.names.unique(self.base or base or opcode)
        op = create(OP_CLASSES[opcode], operands, type_of(shape), own, name)
        append(self.block, op)
        self.ops.append(op)
        return op.results[0]

    def parameter(self, index: int, shape: Shape, base: str) -> SSAValue:
        """Appends a parameter."""
        return self.emit("parameter", (), shape, {"parameter_number": integer(index)}, base=base)

    def element(self, value: SSAValue, index: int) -> SSAValue:
        """Appends the `get-tuple-element` of part `index`."""
        shape = shape_of(value.type)
        assert isinstance(shape, TupleShape)
        common = self.common
        sharding = common.get("sharding")
        if isinstance(sharding, ShardingAttr) and index < len(sharding.data.elements):
            self.common = {**common, "sharding": ShardingAttr(sharding.data.elements[index])}
        part = self.emit(
            "get-tuple-element", (value,), shape.elements[index], {"index": integer(index)}
        )
        self.common = common
        return part

    def split(self, value: SSAValue, count: int) -> list[SSAValue]:
        """The first `count` parts of a tuple."""
        return [self.element(value, index) for index in range(count)]

    def tuple(self, values: Sequence[SSAValue]) -> SSAValue:
        """Appends a tuple."""
        return self.emit("tuple", values, TupleShape(tuple(shape_of(v.type) for v in values)))

    def at(self, location: Attribute) -> None:
        """From now on instructions have the name and metadata of `location`, and nothing else."""
        self.base, metadata = self.exporter.locations.of(location)
        self.common = {} if metadata is None else {"metadata": metadata}

    # -------------------------------------------------------------- reading

    def value(self, value: SSAValue) -> SSAValue:
        """What a value of the program is in this computation."""
        return self.values[value]

    def inputs(self, op: Operation) -> list[SSAValue]:
        """The operands of `op` in this computation."""
        values = self.values
        return [values[v] for v in op.operands]

    # -------------------------------------------------------------- converting

    def lower_block(self, block: Block) -> list[SSAValue]:
        """Converts the ops of a block; returns what its terminator returns."""
        locate = self.exporter.locations.of
        values = self.values
        exporter = self.exporter
        marked_handler = exporter.marked_handler
        for op in block.ops:
            if op.name in CONSTANTS and not used_in(op, block):
                continue  # the regions that use it make it again
            handler = marked_handler(op) or HANDLERS.get(op.name)
            if handler is None:
                if op.name in TERMINATORS:
                    self.base, self.common = None, {}
                    return [values[v] for v in op.operands]
                raise problem(
                    "HLO0420",
                    op,
                    "has no HLO form",
                    "expand or remove the op first; `hlo-opt --list-passes` shows what there is",
                )
            self.base, metadata = locate(op.location)
            self.common = {} if metadata is None else {"metadata": metadata}
            if op.attributes:
                exporter.add_common(op, self)
            try:
                first = len(self.ops)
                results = handler(op, self)
                if op.attributes:
                    exporter.restore(op, self, first, results)
            except TypeProblem as found:
                raise type_problem(op, found) from None
            for result, value in zip(op.results, results, strict=True):
                values[result] = value
        return []

    def finish(self, root: SSAValue, *, is_entry: bool = False) -> ComputationOp:
        """Closes the computation and gives it and its instructions their last names."""
        names = self.exporter.names
        exporter = self.exporter
        for op in self.ops:
            op.instruction_name = names.unique(op.instruction_name or op.opcode.name)
            metadata = op.properties.get("metadata")
            if isinstance(metadata, MetadataAttr) and metadata.data.stack_frame_id:
                settle = without_frame if op.name == "hlo.parameter" else exporter.locations.settle
                op.properties["metadata"] = settle(metadata)
        name = f"{self.name}.{len(exporter.computations) + 1}"
        name = exporter.computation_names.unique(name)
        computation = close(name, self.block, root, {"is_entry": UnitAttr()} if is_entry else None)
        exporter.computations.append(computation)
        return computation


TERMINATORS = frozenset(
    {"sdy.return", "stablehlo.return", "func.return", "mhlo.return", "hlo.return"}
)


def type_problem(op: Operation, found: TypeProblem) -> Exception:
    """The coded error for a type met at `op`."""
    if found.quantized:
        return problem(
            "HLO0423",
            op,
            f"{found}",
            "quantized types are rewritten before conversion; quantize with constants of"
            " uniform_quantize, or use integer types with explicit scales",
        )
    return problem("HLO0421", op, f"{found}", "use tensors of HLO's element types")


class Exporter:
    """One conversion of a module."""

    def __init__(
        self,
        module: ModuleOp,
        convert_function: Callable[[Exporter, FuncOp], ComputationOp],
        marked_handler: Callable[[Operation], Handler | None],
        restore: Callable[[Operation, Body, int, Sequence[SSAValue]], None],
    ) -> None:
        """`convert_function` makes the computation of a function, `marked_handler` gives the handler of an op that is
        marked with an instruction, and `restore` sets what marks say of the instructions made from an op.
        """
        self.module = module
        self.convert_function = convert_function
        self.marked_handler = marked_handler
        self.restore = restore
        self.names = NameUniquer()
        self.computation_names = NameUniquer()
        self.locations = Locations()
        self.computations: list[ComputationOp] = []
        self.functions: dict[str, FuncOp] = {
            op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)
        }
        self.lowered: dict[str, ComputationOp] = {}
        self.lowering: set[str] = set()
        self.fused: set[str] = set()
        """Functions whose computation a fusion has, which shares it with nobody."""
        self.region_count = 0
        self.common_readers: list[Callable[[Operation, Body], None]] = []

    def add_common(self, op: Operation, body: Body) -> None:
        """Adds what attributes of any op say of its instructions: sharding, frontend attributes."""
        for reader in self.common_readers:
            reader(op, body)

    # -------------------------------------------------------------- regions

    def region(
        self, op: Operation, region: Region, *, tupled: bool = False, single: bool = False
    ) -> ComputationOp:
        """The computation of a region that takes its block's arguments as parameters.

        `tupled`: a lone result becomes a tuple too. `single`: exactly one value is returned.
        """
        body = Body(self, self.region_name())
        block = region.block
        for index, argument in enumerate(block.args):
            # A region without locations of its own was made with its op, as by `applies`.
            unknown = isinstance(argument.location, UnknownLoc)
            body.at(op.location if unknown else argument.location)
            shape = hlo_shape(argument.type)
            body.values[argument] = body.parameter(index, shape, f"Arg_{index}")
        body.base, body.common = None, {}
        self.bring(op, (region,), body)
        results = body.lower_block(block)
        if single and len(results) != 1:
            raise problem("HLO0422", op, f"its region returns {len(results)} values, not one")
        root = results[0] if len(results) == 1 and not tupled else body.tuple(results)
        return body.finish(root)

    def region_name(self) -> str:
        """The next region's name."""
        self.region_count += 1
        return f"region_{self.region_count - 1}"

    def bring(self, op: Operation, regions: Sequence[Region], body: Body) -> None:
        """Makes the constants that `regions` use from outside again in `body`.

        Raises `HloError` HLO0422 when anything else is used.
        """
        for value in captured(regions):
            if not is_constant(value):
                raise problem(
                    "HLO0422",
                    op,
                    "its region uses a value from outside, which HLO cannot pass to it",
                    "compute the value inside of the region, or pass it as an operand",
                )
        self.sink(regions, body)

    def sink(self, regions: Sequence[Region], body: Body) -> None:
        """Makes the constants from outside that `regions` themselves use again in `body`.

        The one used first comes last: XLA puts each at the front. Nested regions make their own.
        """
        for value in reversed(direct_constants(regions)):
            owner = value.owner
            assert isinstance(owner, Operation)
            body.at(owner.location)
            (body.values[value],) = HANDLERS[owner.name](owner, body)
        body.base, body.common = None, {}

    # -------------------------------------------------------------- functions

    def function(self, name: str, at: Operation) -> ComputationOp:
        """The computation of a function, converted when it is first asked for.

        Raises `HloError` HLO0424 when there is no such function, or it calls itself.
        """
        found = self.lowered.get(name)
        if found is not None:
            return found
        function = self.functions.get(name)
        if function is None:
            raise problem("HLO0424", at, f"there is no function @{name}", "define the function")
        if name in self.lowering:
            raise problem(
                "HLO0424", at, f"@{name} calls itself, which HLO cannot say", "use stablehlo.while"
            )
        self.lowering.add(name)
        found = self.lowered[name] = self.fresh(function)
        self.lowering.discard(name)
        return found

    def lower_deep(self) -> None:
        """Converts functions ahead of their callers where calls nest deeper than recursion goes.

        Every function on a level that is a multiple of `_LEVELS` above functions that call none.
        """
        if len(self.functions) > _LEVELS:
            for name, level in _levels(self.functions).items():
                if level % _LEVELS == 0 and name != "main":
                    self.function(name, self.functions[name])

    def fresh(self, function: FuncOp) -> ComputationOp:
        """A new computation of a function that is not the entry."""
        if not function.body.blocks:
            raise problem("HLO0424", function, f"@{function.sym_name.data} has no body")
        return self.convert_function(self, function)

    def parameters(
        self, function: FuncOp, body: Body, extra: Callable[[int, Body], None] | None = None
    ) -> list[SSAValue]:
        """Appends the parameters of a function; `extra` adds properties to each."""
        found: list[SSAValue] = []
        for index, argument in enumerate(function.body.block.args):
            body.at(argument.location)
            if extra is not None:
                extra(index, body)
            value = body.parameter(index, hlo_shape(argument.type), f"Arg_{index}")
            body.values[argument] = value
            found.append(value)
        body.base, body.common = None, {}
        return found


_LEVELS = 32
"""Levels of calls that are converted by recursion."""


def _levels(functions: Mapping[str, FuncOp]) -> dict[str, int]:
    """How many calls deep functions go, 1 where they call none; callees first. Calls that close a cycle
    do not count."""
    levels: dict[str, int] = {}
    for start in functions:
        stack = [] if start in levels else [start]
        callees: dict[str, list[str]] = {}
        while stack:
            name = stack[-1]
            if name not in callees:
                callees[name] = _callees(functions[name], functions)
                stack += [c for c in callees[name] if c not in levels and c not in callees]
                continue
            stack.pop()
            levels[name] = 1 + max((levels.get(c, 0) for c in callees[name]), default=0)
    return levels


def _callees(function: FuncOp, functions: Mapping[str, FuncOp]) -> list[str]:
    found: dict[str, None] = {}
    for op in function.walk():
        for value in op.properties.values():
            is_list = isinstance(value, ArrayAttr)
            listed = cast("ArrayAttr[Attribute]", value).data if is_list else (value,)
            for one in listed:
                if isinstance(one, SymbolRefAttr) and one.root_reference.data in functions:
                    found[one.root_reference.data] = None
    return list(found)


def captured(regions: Sequence[Region]) -> list[SSAValue]:
    """Values that `regions` use and that are defined outside of them, in the order of first use."""
    inside: set[Any] = set()
    found: dict[SSAValue, None] = {}
    for region in regions:
        inside.update(region.blocks)
        for op in region.walk():
            for nested in op.regions:
                inside.update(nested.blocks)
            for value in op.operands:
                owner = value.owner
                block = owner if isinstance(owner, Block) else owner.parent
                if block not in inside:
                    found[value] = None
    return list(found)


def used_in(op: Operation, block: Block) -> bool:
    """Whether an op of `block` itself, not of a region within, uses a result of `op`."""
    return any(use.operation.parent is block for result in op.results for use in result.uses)


def direct_constants(regions: Sequence[Region]) -> list[SSAValue]:
    """Constants from outside that ops of `regions`, not of regions within, use; by first use."""
    found: dict[SSAValue, None] = {}
    blocks = {block for region in regions for block in region.blocks}
    for region in regions:
        for block in region.blocks:
            for op in block.ops:
                for value in op.operands:
                    owner = value.owner
                    if isinstance(owner, Operation) and owner.name in CONSTANTS:
                        if owner.parent not in blocks:
                            found[value] = None
    return list(found)


def is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant of the program."""
    owner = value.owner
    return isinstance(owner, Operation) and owner.name in CONSTANTS


CONSTANTS = frozenset({"stablehlo.constant", "mhlo.constant", "arith.constant"})


def calls(computation: ComputationOp) -> Attribute:
    """A reference to a computation."""
    return symbol(computation.computation_name)


def signature(computation: ComputationOp) -> ProgramLayout:
    """Shapes of a computation's parameters and root."""
    return ProgramLayout(tuple(p.shape for p in computation.parameters), computation.root.shape)


def result_shapes(op: Operation) -> list[Shape]:
    """Shapes of the results of `op`. Raises `TypeProblem`."""
    return [hlo_shape(r.type) for r in op.results]


def result_shape(op: Operation) -> Shape:
    """Shape of the one result of `op`. Raises `TypeProblem`."""
    return hlo_shape(op.results[0].type)


def joined_shape(op: Operation) -> Shape:
    """Shape of an instruction that has all results of `op`: a tuple unless it is one."""
    shapes = result_shapes(op)
    return shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))


def location_of(value: SSAValue) -> Attribute:
    """Location of the op or the block argument that a value comes from."""
    if isinstance(value, BlockArgument):
        return value.location
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner.location
