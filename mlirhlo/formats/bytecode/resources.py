"""Resources: named blobs, booleans and strings that stand outside of the operations."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.formats.bytecode.container import Container, Section
from mlirhlo.formats.bytecode.cursor import Cursor

BLOB, BOOL, STRING = range(3)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource."""

    group: str
    """The dialect, or the name of the external owner."""
    key: str
    value: bytes | bool | str
    alignment: int = 1
    """Of a blob."""
    is_external: bool = False
    """Whether the owner is no dialect."""


def read_resources(container: Container) -> tuple[Resource, ...]:
    """All resources, external ones first. Raises HLO0221."""
    index = container.section(Section.RESOURCE_OFFSET)
    content = container.section(Section.RESOURCE)
    if index is None or content is None:
        return ()
    found: list[Resource] = []
    for _ in range(index.count()):
        _group(container, index, content, found, container.string(index), is_external=True)
    while not index.done():
        offset = index.pos
        number = index.varint()
        if number >= len(container.dialects):
            raise index.problem(f"dialect {number} does not exist", offset)
        name = container.dialects[number].name
        _group(container, index, content, found, name, is_external=False)
    return tuple(found)


def _group(
    container: Container,
    index: Cursor,
    content: Cursor,
    found: list[Resource],
    name: str,
    *,
    is_external: bool,
) -> None:
    for _ in range(index.count(3)):
        key = container.string(index)
        part = content.sub(index.varint())
        offset = index.pos
        match index.byte():
            case 0:
                alignment = part.varint()
                size = part.varint()
                part.align(alignment)
                found.append(Resource(name, key, part.take(size), alignment, is_external))
            case 1:
                found.append(Resource(name, key, bool(part.byte()), 1, is_external))
            case 2:
                found.append(Resource(name, key, container.string(part), 1, is_external))
            case kind:
                raise index.problem(f"a resource of kind {kind} is not known", offset)
        if not part.done():
            raise part.problem("bytes are left over in a resource")
