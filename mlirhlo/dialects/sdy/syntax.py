"""Readers of Shardy's attribute syntax, from xDSL's parser; the counterpart of `str` in `values`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xdsl.parser import AttrParser

from mlirhlo.dialects.sdy.values import (
    AllToAllParam,
    AllToAllParamList,
    AxisRef,
    AxisRefList,
    AxisToPropagationDetails,
    DimensionSharding,
    DimMapping,
    EdgeValueRef,
    ListOfAxisRefLists,
    ManualAxes,
    Mesh,
    MeshAxis,
    OpShardingRule,
    PropagationEdges,
    PropagationOneStep,
    SubAxis,
    TensorMapping,
    TensorSharding,
    TensorShardingPerValue,
    ValueProblem,
    factor_indices,
    factor_symbol,
)

Item = TypeVar("Item")

_SQUARE = AttrParser.Delimiter.SQUARE
_PAREN = AttrParser.Delimiter.PAREN
_BRACES = AttrParser.Delimiter.BRACES


def _items(
    parser: AttrParser, delimiter: AttrParser.Delimiter, read: Callable[[AttrParser], Item]
) -> tuple[Item, ...]:
    return tuple(parser.parse_comma_separated_list(delimiter, lambda: read(parser)))


def _some(
    parser: AttrParser, opening: str, closing: str, read: Callable[[AttrParser], Item]
) -> tuple[Item, ...]:
    """Like `_items`, where the syntax has no empty list."""
    parser.parse_characters(opening)
    found = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: read(parser))
    parser.parse_characters(closing)
    return tuple(found)


def _size(parser: AttrParser) -> int:
    return parser.parse_integer(allow_boolean=False)


def read_mesh_axis(parser: AttrParser) -> MeshAxis:
    """Reads `"x"=4`."""
    name = parser.parse_str_literal()
    parser.parse_punctuation("=")
    start = parser.pos
    size = _size(parser)
    if size < 1:
        parser.raise_error(f"axis size must be at least 1, got: {size}", start, parser.pos)
    return MeshAxis(name, size)


def read_mesh(parser: AttrParser) -> Mesh:
    """Reads `<["x"=2], device_ids=[1, 0]>`."""
    start = parser.pos
    with parser.in_angle_brackets():
        axes = _items(parser, _SQUARE, read_mesh_axis)
        device_ids: tuple[int, ...] = ()
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("device_ids")
            parser.parse_punctuation("=")
            device_ids = _some(parser, "[", "]", _size)
    try:
        return Mesh.checked(axes, device_ids)
    except ValueProblem as problem:
        parser.raise_error(str(problem), start, parser.pos)


def read_sub_axis(parser: AttrParser) -> SubAxis:
    """Reads `(1)2`."""
    parser.parse_punctuation("(")
    pre_size = _size(parser)
    parser.parse_punctuation(")")
    return SubAxis(pre_size, _size(parser))


def read_axis_ref(parser: AttrParser) -> AxisRef:
    """Reads `"x"` or `"x":(1)2`."""
    name = parser.parse_str_literal()
    if parser.parse_optional_punctuation(":") is None:
        return AxisRef(name)
    return AxisRef(name, read_sub_axis(parser))


def read_axis_refs(parser: AttrParser) -> tuple[AxisRef, ...]:
    """Reads `{"x", "y"}`; may be empty."""
    return _items(parser, _BRACES, read_axis_ref)


def read_axis_ref_list(parser: AttrParser) -> AxisRefList:
    """Reads `{"x", "y"}`; may be empty."""
    return AxisRefList(read_axis_refs(parser))


def read_list_of_axis_ref_lists(parser: AttrParser) -> ListOfAxisRefLists:
    """Reads `[{"x"}, {}]`."""
    return ListOfAxisRefLists(_items(parser, _SQUARE, read_axis_ref_list))


def read_dimension_sharding(parser: AttrParser) -> DimensionSharding:
    """Reads `{"x", ?}p1`."""
    axes: list[AxisRef] = []
    is_closed = True
    parser.parse_punctuation("{")
    while parser.parse_optional_punctuation("}") is None:
        if axes:
            parser.parse_punctuation(",")
        if parser.parse_optional_punctuation("?") is not None:
            is_closed = False
            parser.parse_punctuation("}")
            break
        axes.append(read_axis_ref(parser))
    return DimensionSharding(tuple(axes), is_closed, _priority(parser))


def _priority(parser: AttrParser) -> int | None:
    start = parser.pos
    word = parser.parse_optional_identifier()
    if word is None:
        return None
    digits = word[1:]
    if word[0] != "p" or not (digits.isascii() and digits.isdigit()):
        parser.raise_error(
            f"expecting priority in format 'p<number>', got: {word}", start, parser.pos
        )
    if len(digits) > 1 and digits[0] == "0":
        parser.raise_error(
            f"priorities with leading zeros are not allowed, got: {word}", start, parser.pos
        )
    return int(digits)


def _mesh_or_ref(parser: AttrParser) -> Mesh | str:
    if parser.parse_optional_keyword("mesh") is not None:
        return read_mesh(parser)
    return parser.parse_symbol_name().data


def read_tensor_sharding(parser: AttrParser) -> TensorSharding:
    """Reads `<@mesh, [{"x"}], replicated={"y"}, unreduced={"z"}>`."""
    named: dict[str, tuple[AxisRef, ...]] = {}
    with parser.in_angle_brackets():
        mesh = _mesh_or_ref(parser)
        parser.parse_punctuation(",")
        dims = _items(parser, _SQUARE, read_dimension_sharding)
        while parser.parse_optional_punctuation(",") is not None:
            start = parser.pos
            keyword = parser.parse_optional_keyword_in(("replicated", "unreduced"))
            if keyword is None or keyword in named:
                parser.raise_error("expected valid named axis list after comma", start, parser.pos)
            parser.parse_punctuation("=")
            named[keyword] = _some(parser, "{", "}", read_axis_ref)
    return TensorSharding(mesh, dims, named.get("replicated", ()), named.get("unreduced", ()))


def read_stripped_per_value(parser: AttrParser) -> TensorShardingPerValue:
    """Reads `[<@mesh, [{"x"}]>, …]`."""
    return TensorShardingPerValue(_items(parser, _SQUARE, read_tensor_sharding))


def read_per_value(parser: AttrParser) -> TensorShardingPerValue:
    """Reads `<[<@mesh, [{"x"}]>, …]>`."""
    with parser.in_angle_brackets():
        return read_stripped_per_value(parser)


def read_manual_axes(parser: AttrParser) -> ManualAxes:
    """Reads `{"x", "y"}`."""
    return ManualAxes(_items(parser, _BRACES, AttrParser.parse_str_literal))


def _factors(parser: AttrParser) -> tuple[int, ...]:
    start = parser.pos
    word = parser.parse_identifier("factor symbol expected")
    try:
        return factor_indices(word)
    except ValueProblem as problem:
        parser.raise_error(str(problem), start, parser.pos)


def _factor(parser: AttrParser) -> int:
    start = parser.pos
    found = _factors(parser)
    if len(found) != 1:
        parser.raise_error("expecting single factor symbol", start, parser.pos)
    return found[0]


def read_dim_mapping(parser: AttrParser) -> DimMapping:
    """Reads `ij`; nothing where no factor follows."""
    start = parser.pos
    word = parser.parse_optional_identifier()
    try:
        return DimMapping(factor_indices(word or ""))
    except ValueProblem as problem:
        parser.raise_error(str(problem), start, parser.pos)


def read_tensor_mapping(parser: AttrParser) -> TensorMapping:
    """Reads `[i, jk]`."""

    def dim(parser: AttrParser) -> DimMapping:
        return DimMapping(_factors(parser))

    return TensorMapping(_items(parser, _SQUARE, dim))


def read_op_sharding_rule(parser: AttrParser) -> OpShardingRule:
    """Reads `<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}, custom>`."""
    with parser.in_angle_brackets():
        operands = _some(parser, "(", ")", read_tensor_mapping)
        parser.parse_punctuation("->")
        results = _some(parser, "(", ")", read_tensor_mapping)
        sizes: list[int] = []

        def size() -> None:
            start = parser.pos
            factor = _factor(parser)
            if factor != len(sizes):
                parser.raise_error(
                    "expecting factor indices to be ordered like an iota ([0,1,2,...], e.g. "
                    "{i=#, j=#, ...}). Expecting factor index symbol "
                    f"'{factor_symbol(len(sizes))}', received: '{factor_symbol(factor)}'",
                    start,
                    parser.pos,
                )
            parser.parse_punctuation("=")
            sizes.append(_size(parser))

        parser.parse_optional_comma_separated_list(_BRACES, size)
        kinds: list[tuple[int, ...]] = []
        for keyword in ("reduction", "need_replication", "permutation", "blocked_propagation"):
            if parser.parse_optional_keyword(keyword) is None:
                kinds.append(())
                continue
            parser.parse_punctuation("=")
            found = parser.parse_optional_comma_separated_list(_BRACES, lambda: _factor(parser))
            kinds.append(tuple(found or ()))
        custom = parser.parse_optional_punctuation(",") is not None
        if custom:
            parser.parse_keyword("custom")
    reduction, replication, permutation, blocked = kinds
    return OpShardingRule(
        tuple(sizes), operands, results, reduction, replication, permutation, blocked, custom
    )


def read_all_to_all_param(parser: AttrParser) -> AllToAllParam:
    """Reads `{"x"}: 0->1`."""
    axes = read_axis_refs(parser)
    parser.parse_punctuation(":")
    source = _size(parser)
    parser.parse_punctuation("->")
    return AllToAllParam(axes, source, _size(parser))


def read_all_to_all_param_list(parser: AttrParser) -> AllToAllParamList:
    """Reads `[{"x"}: 0->1, …]`."""
    return AllToAllParamList(_items(parser, _SQUARE, read_all_to_all_param))


def read_edge_value_ref(parser: AttrParser) -> EdgeValueRef:
    """Reads `operand-0`."""
    kind = parser.parse_optional_keyword_in(("operand", "result"))
    if kind is None:
        parser.raise_error("expected operand or result")
    return EdgeValueRef(kind, _after_minus(parser))


def _after_minus(parser: AttrParser) -> int:
    start = parser.pos
    number = _size(parser)
    if parser.lexer.input.content[start : start + 1] != "-":
        parser.raise_error("expected '-'", start)
    return -number


def read_axis_details(parser: AttrParser) -> AxisToPropagationDetails:
    """Reads `{"x" = operand-0 -> [result-0]}`."""
    with parser.in_braces():
        axis = read_axis_ref(parser)
        parser.parse_punctuation("=")
        source = read_edge_value_ref(parser)
        parser.parse_punctuation("->")
        targets = _some(parser, "[", "]", read_edge_value_ref)
    return AxisToPropagationDetails(axis, source, targets)


def read_one_step(parser: AttrParser) -> PropagationOneStep:
    """Reads `{step-0 = [{"x" = operand-0 -> [result-0]}]}`."""
    with parser.in_braces():
        parser.parse_keyword("step")
        index = _after_minus(parser)
        parser.parse_punctuation("=")
        entries = _some(parser, "[", "]", read_axis_details)
    return PropagationOneStep(index, entries)


def read_propagation_edges(parser: AttrParser) -> PropagationEdges:
    """Reads `<[{step-0 = […]}, …]>`."""
    with parser.in_angle_brackets():
        return PropagationEdges(_some(parser, "[", "]", read_one_step))
