"""Propagating shapes through a program, function by function, with every size that is known.

A function is refined once for each combination of argument types and of small integer constants
among its arguments; these become constants inside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from mlirhlo.analysis.stablehlo import ConstraintError, infer_types
from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects import quick
from mlirhlo.dialects.chlo.table import ROWS as CHLO_ROWS
from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.quick import put_operand
from mlirhlo.dialects.stablehlo.table import ROWS
from mlirhlo.nesting import Walk, walked
from mlirhlo.rewrites.stablehlo_refine_shapes.folding import fold
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import (
    array_of_value,
    constant_before,
    ints_of_value,
    refined,
    replace,
    set_type,
    sizes_of,
)
from mlirhlo.rewrites.stablehlo_refine_shapes.shaped_calls import sizes_of_results
from mlirhlo.rewrites.stablehlo_refine_shapes.static_ops import make_static
from mlirhlo.rewrites.stablehlo_refine_shapes.unread import is_pure, sweep
from mlirhlo.rewrites.stablehlo_to_hlo.problems import place_of

_SAME = frozenset(
    {
        *("stablehlo.optimization_barrier", "stablehlo.cholesky", "stablehlo.reverse"),
        *("stablehlo.collective_permute", "stablehlo.collective_broadcast"),
    }
)
"""Ops whose results have the types of their operands."""


_SHAPED = frozenset({"stablehlo.bitcast_convert", "stablehlo.real_dynamic_slice"})
"""Ops whose sizes have a rule in `shaped_calls`."""


class Refiner:
    """One refinement of a module, in place."""

    def __init__(self, module: ModuleOp, *, canonicalize: bool = True) -> None:
        self.module = module
        self.canonicalize = canonicalize
        """Whether ops whose shapes are known become static ones."""
        self.functions = {
            op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks
        }
        self.instances: dict[object, FuncOp] = {}
        """Refined functions by name, argument types and constants."""
        self.names: set[str] = set()
        self._numbers: dict[str, int] = {}
        """Of each name, how many with a number are taken."""
        self.open: set[str] = set()

    def run(self) -> None:
        """Refines all public functions, and what they call."""
        with paused_gc():
            roots = [
                (name, function)
                for name, function in self.functions.items()
                if not _is_private(function)
            ]
            public = {name for name, _ in roots}
            self.names = set(public)
            for name, function in roots:
                self.open.add(name)
                walked(self._function(function))
                self.open.discard(name)
            block = self.module.body.block
            kept = public | self._of_custom_calls()
            for name, function in self.functions.items():
                if name not in kept:
                    function.detach()
                    function.erase(safe_erase=False)
            reached = self._reached([function for _, function in roots])
            for instance in self.instances.values():
                if instance.parent is None and instance.sym_name.data in reached:
                    block.add_op(instance)

    def _reached(self, roots: Sequence[FuncOp]) -> set[str]:
        """Names of all functions that are called still."""
        made = {one.sym_name.data: one for one in self.instances.values()}
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            for op in waiting.pop().walk():
                called = op.properties.get("callee") or op.properties.get("decomposition")
                name = "" if called is None else cast(Any, called).root_reference.data
                if name in made and name not in found:
                    found.add(name)
                    waiting.append(made[name])
        return found

    def _of_custom_calls(self) -> set[str]:
        """Functions that custom calls refer to, in what is refined and in such functions."""
        found: set[str] = set()
        public = [function for function in self.functions.values() if not _is_private(function)]
        waiting = [*public, *self.instances.values()]
        while waiting:
            for op in waiting.pop().walk():
                listed = op.properties.get("called_computations")
                if not isinstance(listed, ArrayAttr):
                    continue
                for symbol_of in cast("ArrayAttr[SymbolRefAttr]", listed).data:
                    name = symbol_of.root_reference.data
                    if name in self.functions and name not in found:
                        found.add(name)
                        waiting.append(self.functions[name])
        return found

    # -------------------------------------------------------------- functions

    def _function(self, function: FuncOp) -> Walk[None]:
        block = function.body.block
        yield self._block(block)
        ending = block.last_op
        assert ending is not None
        function.properties["function_type"] = FunctionType.from_lists(
            [a.type for a in block.args], [v.type for v in ending.operands]
        )
        sweep(block)

    def _instance(self, name: str, operands: Sequence[SSAValue]) -> Walk[FuncOp | None]:
        """The function `name` for these operands, refined."""
        source = self.functions.get(name)
        if source is None or name in self.open:
            return None
        known = [ints_of_value(value) for value in operands]
        key = (name, tuple(v.type for v in operands), tuple(known))
        found = self.instances.get(key)
        if found is not None:
            return found
        made = self._copy(source)
        block = made.body.block
        first = block.first_op
        assert first is not None
        for argument, value in zip(list(block.args), operands, strict=True):
            set_type(argument, refined(argument.type, value.type))
            array = array_of_value(value)
            if array is not None:
                quick.replace(argument, constant_before(array, value.type, first))
        self.open.add(name)
        yield self._function(made)
        self.open.discard(name)
        _drop_arguments(made, [index for index, one in enumerate(known) if one is not None])
        self.instances[key] = made
        return made

    def _copy(self, function: FuncOp) -> FuncOp:
        """A copy of a function, with a number in its name unless it is the first."""
        copy, name = function.clone(), function.sym_name.data
        own = name
        while own in self.names:
            number = self._numbers.get(name, 0)
            own, self._numbers[name] = f"{name}_{number}", number + 1
        self.names.add(own)
        copy.properties["sym_name"] = StringAttr(own)
        return copy

    def _call(self, op: Operation, key: str) -> Walk[None]:
        """A call of a function, or a composite of its decomposition."""
        name = cast(Any, op.properties[key]).root_reference.data
        is_call = op.name == "func.call"
        made = yield (self._instance(name, op.operands) if is_call else self._decomposed(name, op))
        if made is None:
            return
        op.properties[key] = symbol(made.sym_name.data)
        if is_call:
            op.operands = [v for v in op.operands if ints_of_value(v) is None]
        ending = made.body.block.last_op
        assert ending is not None
        for result, value in zip(op.results, ending.operands, strict=True):
            set_type(result, refined(result.type, value.type))
        for result, value in zip(op.results, ending.operands, strict=True):
            array = array_of_value(value)
            if array is not None:
                quick.replace(result, constant_before(array, value.type, op))
        if is_call and not any(result.first_use for result in op.results) and is_pure(made):
            replace(op, op.results)

    def _decomposed(self, name: str, op: Operation) -> Walk[FuncOp | None]:
        """The decomposition for the operands of a composite, which keeps all its arguments."""
        source = self.functions.get(name)
        if source is None or name in self.open:
            return None
        key = ("composite", name, tuple(v.type for v in op.operands))
        found = self.instances.get(key)
        if found is None:
            found = self._copy(source)
            for argument, value in zip(found.body.block.args, op.operands, strict=True):
                set_type(argument, refined(argument.type, value.type))
            self.open.add(name)
            yield self._function(found)
            self.open.discard(name)
            self.instances[key] = found
        return found

    # -------------------------------------------------------------- ops

    def _block(self, block: Block) -> Walk[None]:
        op = block.first_op
        while op is not None:
            following = op.next_op
            match op.name:
                case "func.call":
                    yield self._call(op, "callee")
                case "stablehlo.composite":
                    yield self._call(op, "decomposition")
                case "stablehlo.while":
                    yield self._while(op)
                case "stablehlo.if" | "stablehlo.case":
                    yield self._branches(op)
                case _:
                    self._op(op)
            if self.canonicalize and op.parent is not None:
                make_static(op, self.functions)
            op = following

    def _op(self, op: Operation) -> None:
        array = fold(op)
        if array is not None:
            type_ = refined(op.results[0].type, _typed(op.results[0].type, array.shape))
            if op.name != "stablehlo.constant":
                replace(op, (constant_before(array, type_, op),))
            return
        match op.name:
            case "stablehlo.custom_call":
                if _is_assertion(op):
                    _check_assertion(op)
                    return
                self._shaped(op)
            case _ if op.name in _SAME:
                for result, value in zip(op.results, op.operands, strict=False):
                    set_type(result, refined(result.type, value.type))
            case _:
                self._inferred(op)
                if op.name in _SHAPED:
                    self._shaped(op)

    def _inferred(self, op: Operation) -> None:
        if not op.results or not op.name.startswith(("stablehlo.", "chlo.")):
            return
        try:
            types = infer_types(op)
        except ConstraintError as found:
            raise HloError(
                Diagnostic(
                    "HLO0429",
                    f"{op.name}: {found.message} [{found.constraint}]",
                    place_of(op),
                    help="the program does not take arguments of these shapes",
                )
            ) from None
        if types is None:
            types = _from_operands(op)
        for result, type_ in zip(op.results, types, strict=False):
            set_type(result, refined(result.type, type_))

    def _shaped(self, op: Operation) -> None:
        """An op with a rule of its own for the sizes of its results."""
        for result, sizes in zip(op.results, sizes_of_results(op), strict=False):
            if sizes is not None:
                set_type(result, refined(result.type, _typed(result.type, sizes)))

    def _while(self, op: Operation) -> Walk[None]:
        """The state has the types that it starts with; what the body hands on unchanged and starts
        as a constant stays that constant."""
        unchanged = _unchanged(op)
        for index, (result, value) in enumerate(zip(op.results, op.operands, strict=True)):
            set_type(result, refined(result.type, value.type))
            array = array_of_value(value) if index in unchanged else None
            for region in op.regions:
                argument = region.block.args[index]
                set_type(argument, refined(argument.type, value.type))
                if array is not None:
                    first = region.block.first_op
                    assert first is not None
                    known = constant_before(array, value.type, first)
                    for use in list(argument.uses):
                        if use.operation is not region.block.last_op:
                            put_operand(use.operation, use.index, known)
        for region in op.regions:
            yield self._block(region.block)

    def _branches(self, op: Operation) -> Walk[None]:
        """Results have the sizes that all branches agree on."""
        endings: list[Operation] = []
        for region in op.regions:
            yield self._block(region.block)
            ending = region.block.last_op
            assert ending is not None
            endings.append(ending)
        for index, result in enumerate(op.results):
            types = {ending.operands[index].type for ending in endings}
            if len(types) == 1:
                set_type(result, refined(result.type, types.pop()))


def _is_private(function: FuncOp) -> bool:
    found = function.properties.get("sym_visibility")
    return isinstance(found, StringAttr) and found.data == "private"


def _typed(type_: Attribute, sizes: Sequence[int]) -> Attribute:
    from xdsl.dialects.builtin import TensorType

    element_type = cast("TensorType[Attribute]", type_).element_type
    return TensorType(element_type, list(sizes))


def _from_operands(op: Operation) -> tuple[Attribute, ...]:
    """Types for results of elementwise ops that inference leaves open."""
    row = ROWS.get(op.name) or CHLO_ROWS.get(op.name)
    if row is None or "elementwise" not in row.traits or not op.operands:
        return ()
    rank = sizes_of(op.results[0].type)
    for value in op.operands:
        sizes = sizes_of(value.type)
        if rank is not None and sizes is not None and len(sizes) == len(rank):
            return (_typed(op.results[0].type, sizes),)
    return ()


def _unchanged(op: Operation) -> set[int]:
    """Which parts of a loop's state the body hands on as they are."""
    block = op.regions[1].block
    ending = block.last_op
    assert ending is not None
    return {
        index
        for index, value in enumerate(ending.operands)
        if isinstance(value, BlockArgument) and value.block is block and value.index == index
    }


def _drop_arguments(function: FuncOp, indices: Sequence[int]) -> None:
    """Takes away arguments that nobody reads any more."""
    block = function.body.block
    for index in reversed(indices):
        block.erase_arg(block.args[index])
    attributes = function.properties.get("arg_attrs")
    if isinstance(attributes, ArrayAttr):
        entries = cast("ArrayAttr[Attribute]", attributes).data
        dropped = set(indices)
        kept = [one for index, one in enumerate(entries) if index not in dropped]
        function.properties["arg_attrs"] = ArrayAttr(kept)
    ending = block.last_op
    assert ending is not None
    function.properties["function_type"] = FunctionType.from_lists(
        [a.type for a in block.args], [v.type for v in ending.operands]
    )


def _is_assertion(op: Operation) -> bool:
    return cast(str, cast(Any, op.properties["call_target_name"]).data) == "shape_assertion"


def _check_assertion(op: Operation) -> None:
    """Removes an assertion that holds. Raises `HloError` HLO0428 for one that does not."""
    values = [ints_of_value(value) for value in op.operands]
    if not values or values[0] is None:
        return
    if not values[0][0]:
        found = op.properties.get("error_message") or op.attributes.get("error_message")
        message = found.data if isinstance(found, StringAttr) else "a shape assertion fails"
        for index, one in enumerate(values[1:]):
            if one is not None:
                message = message.replace(f"{{{index}}}", str(one[0] if len(one) == 1 else one))
        raise HloError(
            Diagnostic(
                "HLO0428", message, place_of(op), help="give arguments of shapes that fit together"
            )
        )
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)
