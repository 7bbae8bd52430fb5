"""`convert`: the whole module; the entry's arguments and results; what the header says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    i1,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Region

from mlirhlo.dialects.hlo.attributes.base import boolean, string
from mlirhlo.dialects.hlo.attributes.header import Booleans
from mlirhlo.dialects.hlo.attributes.sharding_values import ShardingKind
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.hlo_to_stablehlo import (
    bitcasts,
    collectives,
    control_flow,
    custom_calls,
    data_movement,
    elementwise,
    linear_algebra,
    reduction,
    tokens,
)
from mlirhlo.rewrites.hlo_to_stablehlo.annotations import FRONTEND, SHARDING, frontend_dictionary
from mlirhlo.rewrites.hlo_to_stablehlo.core import Importer
from mlirhlo.rewrites.hlo_to_stablehlo.types import has_own_layout, leaves

FAMILIES = (
    bitcasts,
    collectives,
    control_flow,
    custom_calls,
    data_movement,
    elementwise,
    linear_algebra,
    reduction,
    tokens,
)
"""Modules with handlers; importing them registers the handlers."""

LAYOUT_MODE = "mhlo.layout_mode"
ALIASING = "tf.aliasing_output"
DONOR = "jax.buffer_donor"


def convert(module: ModuleOp) -> ModuleOp:
    """The StableHLO of an HLO module, which stays as it is. Raises `HloError` HLO0427."""
    with paused_gc():
        view = HloModule(module)
        importer = Importer(view, custom_calls.fallback)
        main = importer.make_function(view.entry, "main", private=False)
        _annotate(main, view)
        result = ModuleOp(Region(Block([*importer.functions.values(), main])))
        if view.name:
            result.properties["sym_name"] = string(view.name)
        result.attributes.update(_header(view))
        return result


def _header(module: HloModule) -> dict[str, Attribute]:
    """Attributes of the module for what the header says."""
    found: dict[str, Attribute] = {}
    if module.num_partitions != 1:
        found["mhlo.num_partitions"] = IntegerAttr(module.num_partitions, i32)
    if module.replica_count != 1:
        found["mhlo.num_replicas"] = IntegerAttr(module.replica_count, i32)
    if module.frontend_attributes is not None and module.frontend_attributes.entries:
        found[FRONTEND] = frontend_dictionary(module.frontend_attributes)
    if any(op.opcode.name != "parameter" and _is_dynamic(op.shape) for op in module.instructions):
        found["mhlo.is_dynamic"] = boolean(True)
    for key, value in (
        ("allow_spmd_sharding_propagation_to_parameters", module.allow_propagation_to_parameters),
        ("allow_spmd_sharding_propagation_to_output", module.allow_propagation_to_output),
    ):
        if value is not None:
            found[f"mhlo.{key}"] = _flags(value)
    return found


def _flags(value: Booleans) -> Attribute:
    return DenseArrayBase.from_list(i1, [int(v) for v in value.values])


def _is_dynamic(shape: Shape) -> bool:
    return any(isinstance(leaf, ArrayShape) and leaf.is_dynamic for leaf in leaves(shape))


# ---------------------------------------------------------------- the entry


def _offsets(shapes: Sequence[Shape]) -> list[int]:
    """Number of the first leaf of each shape."""
    found, total = [0], 0
    for shape in shapes:
        total += sum(1 for _ in leaves(shape))
        found.append(total)
    return found


def leaf_number(shape: Shape, path: Sequence[int]) -> int | None:
    """Number of the leaf at `path`; None when a tuple is there, or nothing."""
    number = 0
    for index in path:
        if not isinstance(shape, TupleShape) or index >= len(shape.elements):
            return None
        number += sum(sum(1 for _ in leaves(e)) for e in shape.elements[:index])
        shape = shape.elements[index]
    return None if isinstance(shape, TupleShape) else number


def _annotate(main: FuncOp, module: HloModule) -> None:
    """Attributes of arguments and results: shardings, aliasing, donors, layouts."""
    entry = module.entry
    parameters = entry.parameters
    shapes = [p.shape for p in parameters]
    offsets = _offsets(shapes)
    arguments: list[dict[str, Attribute]] = [{} for _ in range(offsets[-1])]
    for parameter, offset in zip(parameters, offsets, strict=False):
        for number, attributes in enumerate(_of_parameter(parameter)):
            arguments[offset + number].update(attributes)
    results: list[dict[str, Attribute]] = [{} for _ in leaves(entry.root.shape)]
    _aliases(module, entry, offsets, arguments)
    layout = module.program_layout
    for own, wanted in ((arguments, layout.parameters), (results, (layout.result,))):
        flat = [leaf for shape in wanted for leaf in leaves(shape)]
        for attributes, leaf in zip(own, flat, strict=False):
            if isinstance(leaf, ArrayShape) and has_own_layout(leaf):
                attributes[LAYOUT_MODE] = string(str(leaf.layout))
    _result_shardings(entry, results)
    for key, own in (("arg_attrs", arguments), ("res_attrs", results)):
        if any(own):
            main.properties[key] = ArrayAttr([DictionaryAttr(one) for one in own])


def _of_parameter(parameter: ParameterOp) -> list[dict[str, Attribute]]:
    """Attributes of the arguments that a parameter becomes."""
    count = sum(1 for _ in leaves(parameter.shape))
    found: list[dict[str, Attribute]] = [{} for _ in range(count)]
    sharding = parameter.sharding
    if sharding is not None:
        parts = sharding.elements if sharding.kind is ShardingKind.TUPLE else (sharding,) * count
        for attributes, part in zip(found, parts, strict=False):
            attributes[SHARDING] = string(str(part))
    if parameter.frontend_attributes is not None:
        for attributes in found:
            attributes[FRONTEND] = frontend_dictionary(parameter.frontend_attributes)
    replication = parameter.parameter_replication
    if replication is not None:
        values = replication.values
        for number, attributes in enumerate(found):
            own = (values[number],) if len(values) == count else values
            attributes["mhlo.parameter_replication"] = ArrayAttr([_bool(v) for v in own])
    return found


def _bool(value: bool) -> BoolAttr:
    return cast(BoolAttr, boolean(value))


def _aliases(
    module: HloModule,
    entry: ComputationOp,
    offsets: Sequence[int],
    arguments: list[dict[str, Attribute]],
) -> None:
    """`input_output_alias` and `buffer_donor`, one argument at a time."""
    parameters = entry.parameters

    def argument(number: int, path: tuple[int, ...]) -> int | None:
        leaf = leaf_number(parameters[number].shape, path) if number < len(parameters) else None
        return None if leaf is None else offsets[number] + leaf

    aliases = module.input_output_alias
    for alias in aliases.entries if aliases is not None else ():
        at = argument(alias.parameter_number, alias.parameter_index)
        output = leaf_number(entry.root.shape, alias.output_index)
        if at is not None and output is not None:
            arguments[at][ALIASING] = IntegerAttr(output, i32)
    donors = module.buffer_donor
    for number, path in donors.entries if donors is not None else ():
        at = argument(number, tuple(path))
        if at is not None:
            arguments[at][DONOR] = boolean(True)


def _result_shardings(entry: ComputationOp, results: list[dict[str, Attribute]]) -> None:
    """Shardings of the entry's root. That of a tuple has a part for each leaf."""
    root = entry.root
    sharding = root.sharding
    if sharding is None or root.opcode.name != "tuple":
        return
    parts = sharding.elements if sharding.kind is ShardingKind.TUPLE else (sharding,) * len(results)
    for attributes, part in zip(results, parts, strict=False):
        attributes[SHARDING] = string(str(part))
