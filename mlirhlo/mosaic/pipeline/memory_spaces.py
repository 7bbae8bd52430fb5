"""Memories: `any` becomes HBM, and each core's own memories say whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, UnitAttr

from mlirhlo.dialects.tpu.attributes import MemorySpaceAttr
from mlirhlo.dialects.tpu.values import MemorySpace
from mlirhlo.mosaic.pipeline.building import functions_of, retype_all, with_space
from mlirhlo.mosaic.target.tiling import is_memref

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

_OF_A_CORE = ("vmem", "smem", "semaphore_mem")


def _space(type_: Attribute) -> MemorySpace | None:
    if not is_memref(type_):
        return None
    stated = cast("MemRefType[Any]", type_).memory_space
    return stated.data if isinstance(stated, MemorySpaceAttr) else None


def specialize_any_memory_space(module: ModuleOp) -> None:
    """`any` becomes `hbm`; arguments that had it are marked `llo.unspecified_memory_space`."""
    for function in functions_of(module):
        arguments = function.regions[0].blocks[0].args
        found = [at for at, a in enumerate(arguments) if _is(a.type, "any")]
        mark_arguments(function, found, "llo.unspecified_memory_space")
    hbm = MemorySpaceAttr(MemorySpace("hbm"))
    retype_all(module, lambda type_: with_space(type_, hbm) if _is(type_, "any") else type_)


def _is(type_: Attribute, name: str) -> bool:
    space = _space(type_)
    return space is not None and space.space == name


def mark_arguments(function: Operation, numbers: list[int], mark: str) -> None:
    """Gives arguments a unit attribute."""
    if not numbers:
        return
    count = len(function.regions[0].blocks[0].args)
    stated: Any = function.properties.get("arg_attrs")
    entries: list[dict[str, Attribute]] = [{} for _ in range(count)]
    if stated is not None:
        entries = [dict(entry.data) for entry in stated.data]
    for at in numbers:
        entries[at][mark] = UnitAttr()
        entries[at] = dict(sorted(entries[at].items()))
    function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(entry) for entry in entries])


def canonicalize_memory_space(module: ModuleOp) -> None:
    """`<vmem>` becomes `<vmem, tc>`, so do SMEM and semaphores; no memory means VMEM."""

    def change(type_: Attribute) -> Attribute:
        if not is_memref(type_):
            return type_
        space = _space(type_) or MemorySpace("vmem")
        if space.space not in _OF_A_CORE or space.core is not None:
            return type_
        return with_space(type_, MemorySpaceAttr(MemorySpace(space.space, "tc")))

    retype_all(module, change)
