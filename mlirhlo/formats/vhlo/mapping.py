"""How attributes of VHLO and properties of StableHLO correspond.

VHLO has no optional attributes, no structured ones, and all its lists are tensors. So each list is
`tensor<Nxi64>` there and `array<i64>` here, a structure is one attribute for each field, and what is
left out here is spelled out there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo.elements import DenseAttr, Elements
from mlirhlo.dialects.stablehlo.structs import StructAttr
from mlirhlo.dialects.stablehlo.table import ROWS
from mlirhlo.formats.bytecode import dense
from mlirhlo.formats.vhlo.attributes import ApiVersionAttr

LISTS = frozenset(
    [
        "base_dilations",
        "broadcast_dimensions",
        "broadcast_sizes",
        "dimensions",
        "edge_padding_high",
        "edge_padding_low",
        "fft_length",
        "interior_padding",
        "known_expanding_dimensions",
        "known_nonexpanding_dimensions",
        "lhs_dilation",
        "limit_indices",
        "permutation",
        "rhs_dilation",
        "slice_sizes",
        "start_indices",
        "strides",
        "window_dilations",
        "window_dimensions",
        "window_strides",
    ]
)
"""Attributes that are `array<i64>` in StableHLO."""
FLAGS = frozenset({"window_reversal"})
"""Attributes that are `array<i1>` in StableHLO."""
SYMBOLS = frozenset({"callee", "decomposition"})
"""Strings that are symbols in StableHLO."""
SYMBOL_LISTS = frozenset({"called_computations"})

NONE = NoneType()
FALSE = IntegerAttr.from_bool(False)
TRUE = IntegerAttr.from_bool(True)


class Unsuitable(Exception):
    """An attribute is not of the kind it has to be."""


# ---------------------------------------------------------------- values


def integer(value: int) -> Attribute:
    """`value : i64`."""
    return IntegerAttr(value, i64)


def _raw(values: bytes, count: int, size: int, type_: Attribute) -> Attribute:
    is_splat = count > 0 and values == values[:size] * count
    return DenseAttr(Elements(type_, values[:size] if is_splat else values, is_splat))


def tensor(values: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Attribute:
    """`dense<values> : tensor<…xi64>`."""
    type_ = TensorType(i64, (len(values),) if shape is None else shape)
    data = b"".join(value.to_bytes(8, "little", signed=True) for value in values)
    return _raw(data, len(values), 8, type_)


def flags(values: tuple[bool, ...]) -> Attribute:
    """`dense<values> : tensor<Nxi1>`."""
    return _raw(bytes(values), len(values), 1, TensorType(i1, (len(values),)))


def integers_of(value: Attribute) -> tuple[int, ...]:
    """The numbers of a tensor or array of i64, flat. Raises `Unsuitable`."""
    if isinstance(value, DenseArrayBase):
        data, count, element = value.data.data, -1, cast("Attribute", cast("Any", value).elt_type)
    else:
        data, count, element = _elements(value)
    if element != i64:
        raise Unsuitable(f"64-bit integers are expected, these are {element}")
    found = [int.from_bytes(data[i : i + 8], "little", signed=True) for i in range(0, len(data), 8)]
    return tuple(found * count if len(found) == 1 and count > 1 else found)


def flags_of(value: Attribute) -> tuple[bool, ...]:
    """The truth values of a tensor or array of i1. Raises `Unsuitable`."""
    if isinstance(value, DenseArrayBase):
        data, count, element = value.data.data, -1, cast("Attribute", cast("Any", value).elt_type)
    else:
        data, count, element = _elements(value)
    if element != i1:
        raise Unsuitable(f"truth values are expected, these are {element}")
    found = [bool(byte & 1) for byte in data]
    return tuple(found * count if len(found) == 1 and count > 1 else found)


def _elements(value: Attribute) -> tuple[bytes, int, Attribute]:
    try:
        found = dense.raw_of(value)
        if found is None:
            raise Unsuitable(f"a tensor is expected, this is {str(value)[:60]}")
        count = dense.element_count(found[0])
    except dense.BadElements as problem:
        raise Unsuitable(str(problem)) from None
    return found[1], count, cast("Attribute", cast("Any", found[0]).get_element_type())


def array(values: tuple[int, ...]) -> Attribute:
    """`array<i64: values>`."""
    data = b"".join(value.to_bytes(8, "little", signed=True) for value in values)
    return cast("Attribute", DenseArrayBase(i64, BytesAttr(data)))


def flag_array(values: tuple[bool, ...]) -> Attribute:
    """`array<i1: values>`."""
    return cast("Attribute", DenseArrayBase(i1, BytesAttr(bytes(values))))


def number_of(value: Attribute) -> int:
    """The number of an integer. Raises `Unsuitable`."""
    if not isinstance(value, IntegerAttr):
        raise Unsuitable(f"an integer is expected, this is {str(value)[:60]}")
    return value.value.data


# ---------------------------------------------------------------- single attributes


def to_plain(name: str, value: Attribute) -> Attribute:
    """The StableHLO form of one attribute of VHLO. Raises `Unsuitable`."""
    if name in LISTS:
        return array(integers_of(value))
    if name in FLAGS:
        return flag_array(flags_of(value))
    if name in SYMBOLS:
        return _symbol(value)
    if name in SYMBOL_LISTS:
        if not isinstance(value, ArrayAttr):
            raise Unsuitable("a list of symbols is expected")
        return ArrayAttr([_symbol(v) for v in cast("ArrayAttr[Attribute]", value).data])
    if isinstance(value, ApiVersionAttr):
        return IntegerAttr(value.number, IntegerType(32))
    return value


def _symbol(value: Attribute) -> Attribute:
    if not isinstance(value, StringAttr):
        raise Unsuitable(f"the name of a symbol is expected, this is {str(value)[:60]}")
    return SymbolRefAttr(value)


def to_vhlo(name: str, value: Attribute) -> Attribute:
    """The VHLO form of one property of StableHLO. Raises `Unsuitable`."""
    if name in LISTS:
        return tensor(integers_of(value))
    if name in FLAGS:
        return flags(flags_of(value))
    if name in SYMBOLS:
        return _name(value)
    if name in SYMBOL_LISTS:
        if not isinstance(value, ArrayAttr):
            raise Unsuitable("a list of symbols is expected")
        return ArrayAttr([_name(v) for v in cast("ArrayAttr[Attribute]", value).data])
    if name == "api_version":
        number = number_of(value)
        for word, known in ApiVersionAttr.cases.items():
            if known == number:
                return ApiVersionAttr(word)
        raise Unsuitable(f"there is no API version {number}")
    return value


def _name(value: Attribute) -> Attribute:
    if not isinstance(value, SymbolRefAttr) or value.nested_references.data:
        raise Unsuitable(f"a symbol is expected, this is {str(value)[:60]}")
    return value.root_reference


# ---------------------------------------------------------------- structures


@dataclass(frozen=True, slots=True)
class Group:
    """A structured property and the attributes of VHLO that have its fields, under the same names."""

    property: str
    cls: type[StructAttr[Any]]
    fields: tuple[tuple[str, bool], ...]
    """Name, and whether it is a list."""


def _group(property: str, cls: type[StructAttr[Any]], lists: str, numbers: str) -> Group:
    fields = [(name, True) for name in lists.split()] + [(name, False) for name in numbers.split()]
    return Group(property, cls, tuple(fields))


_CONVOLUTION = _group(
    "dimension_numbers",
    stablehlo.ConvDimensionNumbersAttr,
    "input_spatial_dimensions kernel_spatial_dimensions output_spatial_dimensions",
    "input_batch_dimension input_feature_dimension kernel_input_feature_dimension"
    " kernel_output_feature_dimension output_batch_dimension output_feature_dimension",
)
_GATHER = _group(
    "dimension_numbers",
    stablehlo.GatherDimensionNumbersAttr,
    "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims"
    " start_index_map",
    "index_vector_dim",
)

GROUPS: Mapping[str, Group] = {
    "convolution": _CONVOLUTION,
    "dynamic_conv": _CONVOLUTION,
    "dot_general": _group(
        "dot_dimension_numbers",
        stablehlo.DotDimensionNumbersAttr,
        "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions"
        " rhs_contracting_dimensions",
        "",
    ),
    "gather": _GATHER,
    "dynamic_gather": _GATHER,
    "scatter": _group(
        "scatter_dimension_numbers",
        stablehlo.ScatterDimensionNumbersAttr,
        "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims"
        " scatter_dims_to_operand_dims",
        "index_vector_dim",
    ),
    "send": _group("channel_handle", stablehlo.ChannelHandleAttr, "", "channel_id channel_type"),
    "recv": _group("channel_handle", stablehlo.ChannelHandleAttr, "", "channel_id channel_type"),
}
"""The structured property of an operation, by opcode."""

RENAMED = {"channel_id": "handle", "channel_type": "type"}
"""Fields whose name differs."""

COLLECTIVES = frozenset(
    name.removeprefix("stablehlo.")
    for name, row in ROWS.items()
    if "collective" in row.traits and "channel_handle" in row.by_name
)
"""Operations whose `channel_id` is the handle of a channel between devices."""
LOST_CHANNEL_TYPE = 0
"""The type of such a channel is not stored; StableHLO too reads this for it."""

ALGORITHM_FIELDS = (
    "lhs_precision_type",
    "rhs_precision_type",
    "accumulation_type",
    "lhs_component_count",
    "rhs_component_count",
    "num_primitive_operations",
    "allow_imprecise_accumulation",
)


def algorithm_to_vhlo(value: Attribute | None) -> dict[str, Attribute]:
    """The attributes of a dot algorithm; all none where there is no algorithm."""
    if value is None:
        return dict.fromkeys(ALGORITHM_FIELDS, NONE)
    if not isinstance(value, stablehlo.DotAlgorithmAttr):
        raise Unsuitable(f"a dot algorithm is expected, this is {str(value)[:60]}")
    data = value.data
    return {
        "lhs_precision_type": data.lhs_precision_type,
        "rhs_precision_type": data.rhs_precision_type,
        "accumulation_type": data.accumulation_type,
        "lhs_component_count": integer(data.lhs_component_count),
        "rhs_component_count": integer(data.rhs_component_count),
        "num_primitive_operations": integer(data.num_primitive_operations),
        "allow_imprecise_accumulation": IntegerAttr.from_bool(data.allow_imprecise_accumulation),
    }


def algorithm_of(values: Mapping[str, Attribute]) -> Attribute | None:
    """The dot algorithm that the attributes make up."""
    found = [values.get(name, NONE) for name in ALGORITHM_FIELDS]
    if all(value == NONE for value in found):
        return None
    lhs, rhs, accumulation = found[:3]
    return stablehlo.DotAlgorithmAttr(
        stablehlo.DotAlgorithm(
            lhs,
            rhs,
            accumulation,
            number_of(found[3]),
            number_of(found[4]),
            number_of(found[5]),
            bool(number_of(found[6])),
        )
    )


# ---------------------------------------------------------------- defaults

_DEFAULT_PRECISION = ArrayAttr([stablehlo.PrecisionAttr("DEFAULT")] * 2)
_EMPTY = ArrayAttr[Attribute]([])
_NO_TEXT = StringAttr("")


def _ones(size: int) -> Attribute:
    return tensor((1,) * size)


def _no_padding(size: int) -> Attribute:
    return tensor((0,) * (2 * size), (size, 2))


def _no_flags(size: int) -> Attribute:
    return flags((False,) * size)


_SIZED: Mapping[str, Callable[[int], Attribute]] = {
    "base_dilations": _ones,
    "lhs_dilation": _ones,
    "padding": _no_padding,
    "rhs_dilation": _ones,
    "window_dilations": _ones,
    "window_reversal": _no_flags,
    "window_strides": _ones,
}
"""Defaults that depend on the number of dimensions."""

_CONSTANT: Mapping[tuple[str, str], Attribute] = {
    ("all_gather", "use_global_device_ids"): FALSE,
    ("all_reduce", "use_global_device_ids"): FALSE,
    ("reduce_scatter", "use_global_device_ids"): FALSE,
    ("cholesky", "lower"): FALSE,
    ("compare", "compare_type"): stablehlo.ComparisonTypeAttr("NOTYPE"),
    ("composite", "composite_attributes"): DictionaryAttr({}),
    ("composite", "version"): integer(0),
    ("convolution", "precision_config"): _DEFAULT_PRECISION,
    ("custom_call", "api_version"): ApiVersionAttr("API_VERSION_ORIGINAL"),
    ("custom_call", "backend_config"): _NO_TEXT,
    ("custom_call", "called_computations"): _EMPTY,
    ("custom_call", "has_side_effect"): FALSE,
    ("custom_call", "operand_layouts"): _EMPTY,
    ("custom_call", "output_operand_aliases"): _EMPTY,
    ("custom_call", "result_layouts"): _EMPTY,
    ("dot", "precision_config"): _DEFAULT_PRECISION,
    ("dot_general", "precision_config"): _DEFAULT_PRECISION,
    ("dynamic_broadcast_in_dim", "known_expanding_dimensions"): tensor(()),
    ("dynamic_broadcast_in_dim", "known_nonexpanding_dimensions"): tensor(()),
    ("dynamic_conv", "precision_config"): _DEFAULT_PRECISION,
    ("dynamic_gather", "indices_are_sorted"): FALSE,
    ("func", "arg_attrs"): _EMPTY,
    ("func", "res_attrs"): _EMPTY,
    ("func", "sym_visibility"): _NO_TEXT,
    ("gather", "indices_are_sorted"): FALSE,
    ("infeed", "infeed_config"): _NO_TEXT,
    ("infeed", "layout"): _EMPTY,
    ("outfeed", "outfeed_config"): _NO_TEXT,
    ("recv", "is_host_transfer"): FALSE,
    ("recv", "source_target_pairs"): tensor(()),
    ("scatter", "indices_are_sorted"): FALSE,
    ("scatter", "unique_indices"): FALSE,
    ("send", "is_host_transfer"): FALSE,
    ("send", "source_target_pairs"): tensor(()),
    ("sort", "dimension"): integer(-1),
    ("sort", "is_stable"): FALSE,
}

DEFAULT_ACCURACY = stablehlo.ResultAccuracyAttr(stablehlo.ResultAccuracy())
_WINDOWED = frozenset(
    name.removeprefix("stablehlo.") for name, row in ROWS.items() if "window_strides" in row.by_name
)


def default(opcode: str, name: str, dimensions: int) -> Attribute | None:
    """What an attribute of VHLO is when StableHLO leaves it out; None where it may not.

    `dimensions` is the number of dimensions of a window.
    """
    known = _CONSTANT.get((opcode, name))
    if known is not None:
        return known
    if name == "result_accuracy":
        return DEFAULT_ACCURACY
    if name == "channel_id" and opcode in COLLECTIVES:
        return integer(0)
    if opcode in _WINDOWED and name in _SIZED:
        return _SIZED[name](dimensions)
    if opcode == "select_and_scatter" and name == "window_dimensions":
        return _ones(dimensions)
    return None


def is_default(opcode: str, name: str, value: Attribute) -> bool:
    """Whether StableHLO leaves an attribute of VHLO out. Raises `Unsuitable`."""
    if opcode in _WINDOWED and name in _SIZED:
        if name == "window_reversal":
            return not any(flags_of(value))
        wanted = 0 if name == "padding" else 1
        return all(number == wanted for number in integers_of(value))
    if name == "window_dimensions":
        return False
    return value == default(opcode, name, 0)


UNIT = UnitAttr()
