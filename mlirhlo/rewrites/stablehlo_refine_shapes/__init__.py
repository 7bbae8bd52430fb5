"""Shape refinement: programs of unknown sizes, once the shapes of their arguments are known.

`refine` is the whole of it: sizes of the arguments go through the program, small constants of
integers are computed, and dynamic ops become static ones. `jax.export` with symbolic shapes writes
such programs. Source: StableHLO's passes of the same names, and jaxlib 0.10.2's behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.stablehlo.attributes import TypeExtensionsAttr
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import (
    element_type_of,
    is_static,
    refined,
    set_type,
    sizes_of,
    wrap_argument,
)

with LATE:
    from mlirhlo.rewrites.stablehlo_refine_shapes import refiner as _refiner
    from mlirhlo.rewrites.stablehlo_refine_shapes import static_ops as _static_ops


__all__ = [
    "StablehloCanonicalizeDynamismPass",
    "StablehloRefineArgumentsPass",
    "StablehloRefineShapesPass",
    "is_dynamic",
    "refine",
    "refine_arguments",
    "refine_for",
    "refine_shapes",
    "takes_any_size",
]


def is_dynamic(module: ModuleOp) -> bool:
    """Whether a StableHLO program has an argument of unknown size, or an op that makes one."""
    for op in module.walk():
        for region in op.regions:
            for block in region.blocks:
                if not all(is_static(argument.type) for argument in block.args):
                    return True
        if not all(is_static(result.type) for result in op.results):
            return True
    return False


def takes_any_size(module: ModuleOp) -> bool:
    """Whether an argument of `@main` has a size that nothing bounds: a program to refine first."""
    main = _main(module)
    signature = None if main is None else main.properties.get("function_type")
    return isinstance(signature, FunctionType) and any(
        not is_static(type_)
        and not isinstance(getattr(type_, "encoding", None), TypeExtensionsAttr)
        for type_ in signature.inputs.data
    )


def _main(module: ModuleOp) -> FuncOp | None:
    return next(
        (
            op
            for op in module.ops
            if isinstance(op, FuncOp) and op.properties.get("sym_name") == StringAttr("main")
        ),
        None,
    )


def refine_for(module: ModuleOp, shapes: Sequence[Sequence[int]]) -> ModuleOp:
    """A copy of a StableHLO program for arguments of these shapes. Raises as `refine` does."""
    main = _main(module)
    declared = () if main is None else main.function_type.inputs.data
    types = [
        own if sizes_of(own) is None else TensorType(element_type_of(own), list(shape))
        for own, shape in zip(declared, shapes, strict=False)
    ]
    if len(shapes) != len(declared):
        raise error("HLO0429", f"@main takes {len(declared)} arguments, not {len(shapes)}")
    return refine(module, types)


def refine(module: ModuleOp, types: Sequence[Attribute]) -> ModuleOp:
    """A copy of a StableHLO program for arguments of these types.

    Raises `HloError`: HLO0429 when the arguments do not fit, HLO0428 when an assertion of the
    program about its shapes fails.
    """
    made = module.clone()
    refine_arguments(made, types)
    refine_shapes(made)
    return made


def refine_arguments(module: ModuleOp, types: Sequence[Attribute]) -> None:
    """Gives the arguments of `@main` these types, in place.

    What reads them still sees the former types, through a custom call that refinement takes away.
    Raises `HloError` HLO0429.
    """
    main = _main(module)
    if main is None:
        raise error("HLO0429", "the program has no function @main", help="call the entry @main")
    arguments = main.body.block.args
    if len(arguments) != len(types):
        raise error("HLO0429", f"@main takes {len(arguments)} arguments, not {len(types)}")
    for index, (argument, wanted) in enumerate(zip(arguments, types, strict=True)):
        own = argument.type
        if not _fits(own, wanted):
            raise error(
                "HLO0429",
                f"argument {index} is {own}, which a {wanted} is not",
                help="give an argument of that element type, rank and known sizes",
            )
        if set_type(argument, refined(own, wanted)):
            wrap_argument(main.body.block, index, own)
    outputs = main.function_type.outputs.data
    main.properties["function_type"] = FunctionType.from_lists([a.type for a in arguments], outputs)


def _fits(declared: Attribute, given: Attribute) -> bool:
    """Whether a value of type `given` can be an argument of type `declared`."""
    from xdsl.dialects.builtin import DYNAMIC_INDEX

    own, other = sizes_of(declared), sizes_of(given)
    if own is None or other is None:
        return declared == given
    if element_type_of(declared) != element_type_of(given):
        return False
    return len(own) == len(other) and all(
        a in (DYNAMIC_INDEX, b) for a, b in zip(own, other, strict=True)
    )


def refine_shapes(module: ModuleOp) -> None:
    """Propagates the shapes of the arguments through a program, in place; dynamic ops of known
    shapes become static. Raises `HloError` HLO0428, HLO0429."""
    _refiner.Refiner(module).run()


def canonicalize_dynamism(module: ModuleOp) -> None:
    """Replaces dynamic ops of static shapes and constant operands by static ones, in place."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    for op in list(module.walk()):
        _static_ops.make_static(op, functions)


@dataclass(frozen=True)
class StablehloRefineShapesPass(ModulePass):
    """
    Propagates the shapes of the arguments through a StableHLO program.

    Before:  `%1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>`
    After:   `%1 = stablehlo.iota dim = 0 : tensor<6xi32>`, where `%0` is known to be 6
    Keeps: results. Private functions are refined for every call of theirs that differs in types or
    in small integer constants, which become constants inside. Assertions about shapes that hold
    disappear; one that does not is an error.
    """

    name = "stablehlo-refine-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Refines `op` in place."""
        refine_shapes(op)


@dataclass(frozen=True)
class StablehloRefineArgumentsPass(ModulePass):
    """
    Gives the arguments of `@main` types with known sizes.

    Before:  `func.func @main(%x: tensor<?x4xf32>)`
    After:   `func.func @main(%x: tensor<6x4xf32>)`, with `types="tensor<6x4xf32>"`
    Needs: `stablehlo-refine-shapes` to run next, for the types of all that follows.
    """

    name = "stablehlo-refine-arguments"

    types: str = ""
    """The types of all arguments, divided by `;` or `,`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the argument types of `op`."""
        refine_arguments(op, read_types(self.types))


@dataclass(frozen=True)
class StablehloCanonicalizeDynamismPass(ModulePass):
    """
    Replaces dynamic ops by static ones where shapes are static and operands constant.

    Before:  `%1 = stablehlo.dynamic_reshape %x, %c : (tensor<6xf32>, tensor<2xi32>) -> tensor<2x3xf32>`
    After:   `%1 = stablehlo.reshape %x : (tensor<6xf32>) -> tensor<2x3xf32>`
    Keeps: results, bit for bit.
    """

    name = "stablehlo-canonicalize-dynamism"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes `op` in place."""
        canonicalize_dynamism(op)


def read_types(text: str) -> list[Attribute]:
    """The types that `tensor<6x4xf32>,tensor<i32>` spells. Raises `HloError` HLO0429."""
    text = text.replace(";", ",").strip().strip("'\"").removesuffix(",")
    if not text:
        return []
    program = f"func.func private @types({text})"
    try:
        module = parse_module(program, "<types>")
    except HloError as problem:
        raise error(
            "HLO0429",
            f"types={text!r} is no list of types: {problem.diagnostics[0].message}",
            help="write types=tensor<6x4xf32>,tensor<i32>",
        ) from None
    (function,) = module.ops
    return list(cast(FuncOp, function).function_type.inputs.data)
