"""A module as it would be with other sizes, or divided among devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.reduce.sizes import resized, sizes_of
from mlirhlo.debug.trials.conditions import load_module, verify
from mlirhlo.debug.trials.texts import module_text
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr, read_sharding
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.syntax import parse_all
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

_PARTITION = "sharding-propagation,spmd-partitioning,dce"


def with_sizes(module: ModuleOp, sizes: Mapping[int, int]) -> ModuleOp:
    """The module with every dimension of a size of another size: another batch, another sequence length.

    Raises `HloError` HLO0871 where no dimension has the size, or constants and reshapes fix it.
    """
    text = module_text(module)
    known = sizes_of(text)
    missing = [size for size in sizes if size not in known]
    if missing:
        some = ", ".join(map(str, known[:12]))
        raise error("HLO0871", f"no dimension has the size {missing[0]}", help=f"sizes are {some}")
    changed = ", ".join(f"{before} to {after}" for before, after in sizes.items())
    try:
        made = load_module(resized(text, sizes), "resized.hlo")
        verify(made, "resized.hlo")
    except HloError as problem:
        said = problem.diagnostics[0].message
        what = f"the module has no meaning with sizes changed from {changed}: {said}"
        hint = "constants or reshapes depend on the size; give all sizes that follow from it"
        raise error("HLO0871", what, help=hint) from None
    return made


def with_sharding(module: ModuleOp, tiles: Mapping[str, Sequence[int]]) -> ModuleOp:
    """The part of the module that one device runs, parameters of the entry cut into tiles along their dimensions.

    Raises `HloError` HLO0871 for tiles that do not fit, and what the partitioner raises.
    """
    made = clone_module(module)
    view = HloModule(made)
    parameters = {op.instruction_name: op for op in view.entry.parameters}
    counts = {prod(tile) for tile in tiles.values()}
    if len(counts) != 1 or counts == {1}:
        raise error("HLO0871", "parameters are cut into different numbers of tiles, or into one")
    devices = counts.pop()
    for name, tile in tiles.items():
        op = parameters.get(name.lstrip("%"))
        rank = None if op is None else len(getattr(op.shape, "dimensions", ()))
        if op is None or rank != len(tile):
            what = (
                f"the entry has no parameter '{name}'"
                if op is None
                else f"'{name}' has {rank} dimensions"
            )
            known = ", ".join(str(p) for p in parameters)
            raise error(
                "HLO0871", what, help=f"parameters are {known}; tiles are counts by dimension"
            )
        text = f"{{devices=[{','.join(map(str, tile))}]<=[{devices}]}}"
        op.properties["sharding"] = ShardingAttr(parse_all(text, read_sharding))
    view.set("num_partitions", integer(devices))
    run_pipeline(made, parse_pipeline(_PARTITION))
    return made
