"""Shardy's binary encoding of its attributes. Read only: their text is shorter and every reader takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.sdy import attributes as sdy
from mlirhlo.dialects.sdy import values
from mlirhlo.formats.bytecode.codec import Sink, Source

T = TypeVar("T")


def _values(source: Source, cls: type[sdy.SdyAttr[T]]) -> tuple[T, ...]:
    """The values of a list of attributes of one kind."""
    found: list[T] = []
    for attribute in source.attributes():
        if not isinstance(attribute, cls):
            raise source.problem(f"a list of {cls.name} is expected, this is {attribute}")
        found.append(cast("sdy.SdyAttr[T]", attribute).data)
    return tuple(found)


def _numbers(source: Source) -> tuple[int, ...]:
    return tuple(source.signed_list())


def _manual_axes(source: Source) -> Attribute:
    return sdy.ManualAxesAttr(
        values.ManualAxes(tuple(source.many(lambda: source.string_attribute().data)))
    )


def _mesh_axis(source: Source) -> Attribute:
    return sdy.MeshAxisAttr(values.MeshAxis(source.string(), source.signed()))


def _mesh(source: Source) -> Attribute:
    return sdy.MeshAttr(values.Mesh(_values(source, sdy.MeshAxisAttr), _numbers(source)))


def _sub_axis(source: Source) -> Attribute:
    return sdy.SubAxisInfoAttr(values.SubAxis(source.signed(), source.signed()))


def _axis_ref(source: Source) -> Attribute:
    name, info = source.string(), source.optional_attribute()
    if info is not None and not isinstance(info, sdy.SubAxisInfoAttr):
        raise source.problem(f"the part of an axis is expected, this is {info}")
    return sdy.AxisRefAttr(values.AxisRef(name, None if info is None else info.data))


def _dimension(source: Source) -> Attribute:
    axes = _values(source, sdy.AxisRefAttr)
    is_closed = bool(source.cursor.byte())
    priority, has_priority = source.cursor.flagged()
    return sdy.DimensionShardingAttr(
        values.DimensionSharding(axes, is_closed, priority if has_priority else None)
    )


def _sharding(source: Source, *, has_unreduced: bool) -> Attribute:
    mesh = source.attribute()
    where: values.Mesh | str
    if isinstance(mesh, SymbolRefAttr):
        where = mesh.root_reference.data
    elif isinstance(mesh, sdy.MeshAttr):
        where = mesh.data
    else:
        raise source.problem(f"a mesh is expected, this is {mesh}")
    return sdy.TensorShardingAttr(
        values.TensorSharding(
            where,
            _values(source, sdy.DimensionShardingAttr),
            _values(source, sdy.AxisRefAttr),
            _values(source, sdy.AxisRefAttr) if has_unreduced else (),
        )
    )


def _per_value(source: Source) -> Attribute:
    shardings = _values(source, sdy.TensorShardingAttr)
    return sdy.TensorShardingPerValueAttr(values.TensorShardingPerValue(shardings))


def _rule(source: Source) -> Attribute:
    return sdy.OpShardingRuleAttr(
        values.OpShardingRule(
            _numbers(source),
            _values(source, sdy.TensorMappingAttr),
            _values(source, sdy.TensorMappingAttr),
            _numbers(source),
            _numbers(source),
            _numbers(source),
            _numbers(source),
            bool(source.cursor.byte()),
        )
    )


def _all_to_all(source: Source) -> Attribute:
    axes = _values(source, sdy.AxisRefAttr)
    return sdy.AllToAllParamAttr(values.AllToAllParam(axes, source.signed(), source.signed()))


_READERS: tuple[Callable[[Source], Attribute], ...] = (
    _manual_axes,
    _mesh_axis,
    _mesh,
    _sub_axis,
    _axis_ref,
    _dimension,
    lambda source: _sharding(source, has_unreduced=False),
    _per_value,
    lambda source: sdy.DimMappingAttr(values.DimMapping(_numbers(source))),
    lambda source: sdy.TensorMappingAttr(values.TensorMapping(_values(source, sdy.DimMappingAttr))),
    _rule,
    lambda source: sdy.AxisRefListAttr(values.AxisRefList(_values(source, sdy.AxisRefAttr))),
    lambda source: sdy.ListOfAxisRefListsAttr(
        values.ListOfAxisRefLists(_values(source, sdy.AxisRefListAttr))
    ),
    _all_to_all,
    lambda source: sdy.AllToAllParamListAttr(
        values.AllToAllParamList(_values(source, sdy.AllToAllParamAttr))
    ),
    lambda source: _sharding(source, has_unreduced=True),
    _per_value,
)
"""Readers by code."""


class SdyCodec:
    """Attributes of the sdy dialect."""

    def read_attribute(self, source: Source) -> Attribute:
        """Decodes an attribute."""
        code = source.varint()
        if code >= len(_READERS):
            raise source.problem(f"the sdy dialect has no attribute of code {code}")
        return _READERS[code](source)

    def read_type(self, source: Source) -> Attribute:
        """There are none."""
        raise source.problem(f"the sdy dialect has no type of code {source.varint()}")

    def write_attribute(self, value: Attribute, sink: Sink) -> bool:
        """Leaves all to text."""
        return False

    def write_type(self, value: Attribute, sink: Sink) -> bool:
        """There are none."""
        return False
