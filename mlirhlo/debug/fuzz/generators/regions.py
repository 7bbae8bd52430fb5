"""Manual regions with random collectives inside, as GSPMD's custom calls or Shardy's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import dims, sizes
from mlirhlo.debug.fuzz.generators.places import Places
from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.dialects.hlo.attributes.sharding import DimensionSharding, NamedSharding, Sharding
from mlirhlo.dialects.hlo.table import opcodes

Add = Callable[[str, str, int], str]
"""Writes `shape rest` with a sharding so often; its name."""

COLLECTIVES = tuple(
    sorted(
        opcodes(lambda row: row.communicates and not (row.name.endswith("-done") or row.newer))
        - {"ragged-all-to-all"}
    )
)
COMBINED = {"pred": "or"}


@dataclass(slots=True)
class Region:
    """One region about one array."""

    c: Choices
    places: Places
    add: Add
    head: list[str]
    """Computations of the module."""
    type_: str
    shape: Sequence[int]

    def write(self, value: str) -> str:
        """The array behind the region, which is as long as the one before it."""
        c, mesh = self.c, self.places.mesh
        manual = c.some(mesh.names, 70)
        axes: list[list[str]] = [[] for _ in self.shape]
        left = list(self.shape)
        for name, size in mesh.axes:
            fits = [d for d, n in enumerate(left) if n and n % size == 0]
            if fits and c.chance(75):
                dim = c.pick(fits)
                left[dim] //= size
                axes[dim].append(name)
        for own in axes:
            own.sort(key=lambda name: name not in manual)
        inside = [[a for a in own if a not in manual] for own in axes]
        own_axes = dict(mesh.axes)
        local = [
            n // math.prod(own_axes[a] for a in own if a in manual)
            for n, own in zip(self.shape, axes, strict=True)
        ]
        outer, inner = self._sharding(axes), self._sharding(inside, manual)
        full, part = sizes(self.type_, self.shape), sizes(self.type_, local)
        if self.places.is_shardy:
            value = self._border(value, part, "GlobalToLocalShape", "in", axes, manual)
            value = self._body(value, local, manual)
            return self._border(value, full, "LocalToGlobalShape", "out", axes, manual)
        call = 'custom-call({}), custom_call_target="{}", sharding={}'
        value = self.add(full, call.format(value, "Sharding", outer), 0)
        value = self.add(part, call.format(value, "SPMDFullToShardShape", inner), 0)
        value = self._body(value, local, manual)
        value = self.add(part, call.format(value, "Sharding", inner), 0)
        return self.add(full, call.format(value, "SPMDShardToFullShape", outer), 0)

    def _sharding(self, axes: Sequence[Sequence[str]], manual: Sequence[str] = ()) -> Sharding:
        parts = tuple(DimensionSharding(tuple(map(AxisRef, own))) for own in axes)
        named = NamedSharding(self.places.mesh, parts, manual=tuple(map(AxisRef, manual)))
        return Sharding.of_mesh(named).to_v2()

    def _border(
        self,
        value: str,
        shape: str,
        target: str,
        key: str,
        axes: Sequence[Sequence[str]],
        manual: Sequence[str],
    ) -> str:
        cuts = ", ".join("{" + ", ".join(f'\\"{a}\\"' for a in own) + "}" for own in axes)
        names = ", ".join(f'\\"{a}\\"' for a in manual)
        return self.add(
            shape,
            f'custom-call({value}), custom_call_target="xla.sdy.{target}", custom_call_has_side_effect=true, '
            f'frontend_attributes={{xla.sdy.{key}_shardings="#sdy.sharding_per_value<[<@mesh, [{cuts}]>]>",'
            f'xla.sdy.manual_axes="#sdy<manual_axes{{{names}}}>"}}',
            0,
        )

    # ---------------------------------------------------------------- inside

    def _body(self, value: str, local: Sequence[int], manual: Sequence[str]) -> str:
        while self.c.chance(60):
            along = self.c.some(manual, 60)
            lone = groups_of(self.places.mesh, [self.c.pick(manual)])
            value = self._collective(value, local, groups_of(self.places.mesh, along), lone)
        return value

    def _collective(
        self, value: str, local: Sequence[int], groups: list[list[int]], lone: list[list[int]]
    ) -> str:
        """`lone`: groups along one axis; shifted along it, copies of a tile stay copies."""
        c, full, count = self.c, sizes(self.type_, local), len(groups[0])
        self.places.channel += 1
        listed = "{" + ",".join(dims(group) for group in groups) + "}"
        plain = f"channel_id={self.places.channel}, replica_groups={listed}"
        named = f"{plain}, use_global_device_ids=true"
        fits = [d for d, n in enumerate(local) if n and n % count == 0]
        match c.pick(COLLECTIVES):
            case "all-reduce":
                rest = f"all-reduce({value}), {named}, to_apply={self._reducer()}"
                return self.add(full, rest, 0)
            case "all-reduce-start":
                rest = f"all-reduce-start({value}), {named}, to_apply={self._reducer()}"
                return self.add(full, f"all-reduce-done({self.add(full, rest, 0)})", 0)
            case "all-gather" | "all-gather-start" as opcode if local:
                return self._gathered(
                    value, local, c.integer(0, len(local) - 1), named, count, opcode
                )
            case "reduce-scatter" if fits:
                dim = c.pick(fits)
                less = [n // count if d == dim else n for d, n in enumerate(local)]
                rest = f"reduce-scatter({value}), {named}, dimensions={{{dim}}}, to_apply={self._reducer()}"
                value = self.add(sizes(self.type_, less), rest, 0)
                self.places.channel += 1
                named = named.replace(
                    f"channel_id={self.places.channel - 1}", f"channel_id={self.places.channel}"
                )
                return self.add(full, f"all-gather({value}), {named}, dimensions={{{dim}}}", 0)
            case "all-to-all" if fits:
                rest = f", {plain}, dimensions={{{c.pick(fits)}}}"
                return self.add(
                    full, f"all-to-all({self.add(full, f'all-to-all({value}){rest}', 0)}){rest}", 0
                )
            case "collective-broadcast":
                return self.add(full, f"collective-broadcast({value}), {plain}", 0)
            case "collective-permute-start":
                pair = f"({full}, {full})"
                rest = f"collective-permute-start({value}), {self._pairs(lone)}"
                return self.add(full, f"collective-permute-done({self.add(pair, rest, 0)})", 0)
            case _:
                return self.add(full, f"collective-permute({value}), {self._pairs(lone)}", 0)

    def _gathered(
        self, value: str, local: Sequence[int], dim: int, named: str, count: int, opcode: str
    ) -> str:
        full = sizes(self.type_, local)
        more = sizes(self.type_, [n * count if d == dim else n for d, n in enumerate(local)])
        rest = f"{opcode}({value}), {named}, dimensions={{{dim}}}"
        if opcode == "all-gather":
            value = self.add(more, rest, 0)
        else:
            value = self.add(more, f"all-gather-done({self.add(f'({full}, {more})', rest, 0)})", 0)
        start = local[dim] * self.c.integer(0, count - 1)
        bounds = ", ".join(
            f"[{start}:{start + n}]" if d == dim else f"[0:{n}]" for d, n in enumerate(local)
        )
        return self.add(full, f"slice({value}), slice={{{bounds}}}", 0)

    def _pairs(self, groups: Sequence[Sequence[int]]) -> str:
        shift = self.c.integer(1, len(groups[0]))
        pairs = [
            f"{{{group[k]},{group[(k + shift) % len(group)]}}}"
            for group in groups
            for k in range(len(group))
        ]
        return f"channel_id={self.places.channel}, source_target_pairs={{{','.join(pairs)}}}"

    def _reducer(self) -> str:
        name = f"joined{len(self.head)}"
        scalar, opcode = f"{self.type_}[]", COMBINED.get(self.type_, "add")
        self.head.append(
            f"{name} {{\n  {name}a = {scalar} parameter(0)\n  {name}b = {scalar} parameter(1)\n"
            f"  ROOT {name}r = {scalar} {opcode}({name}a, {name}b)\n}}\n"
        )
        return name


def groups_of(mesh: Mesh, along: Sequence[str]) -> list[list[int]]:
    """Devices of a mesh that differ along some axes alone."""
    ids = mesh.tiles.ids()
    places = list(itertools.product(*(range(size) for size in mesh.sizes)))
    found: dict[tuple[int, ...], list[int]] = {}
    for place, device in zip(places, ids, strict=True):
        rest = tuple(p for p, name in zip(place, mesh.names, strict=True) if name not in along)
        found.setdefault(rest, []).append(device)
    return list(found.values())
