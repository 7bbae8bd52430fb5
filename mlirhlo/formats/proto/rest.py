"""What a message says beyond the IR, kept so that it can be written again exactly.

The decoder encodes what it decoded and compares. Where a field differs from the original (a field of a
newer producer, one that means nothing for the opcode, a default spelled out or left out), the rest
remembers both: what the encoder writes and what stood there. Encoding puts the original back only
where the encoder still writes the remembered bytes, so a pass that changed the fact in between
is never overruled by a stale field.

A rest is a string attribute: base64 of a message with the fields 1 (encoded) and 2 (original), each a
partial message of the kind it belongs to.
"""

from __future__ import annotations

import base64
import binascii

from mlirhlo.formats.proto.files.wire import WireProblem, fields
from mlirhlo.formats.proto.message import bytes_field, join, split

_ENCODED, _ORIGINAL = 1, 2


def difference(encoded: bytes, original: bytes) -> str | None:
    """The rest that turns `encoded` into `original`; None when they are equal."""
    if encoded == original:
        return None
    ours, theirs = split(encoded), split(original)
    changed = [n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n)]
    if not changed:
        return None
    data = bytes_field(_ENCODED, join({n: ours[n] for n in changed if n in ours}))
    data += bytes_field(_ORIGINAL, join({n: theirs[n] for n in changed if n in theirs}))
    return base64.b64encode(data).decode()


def restore(encoded: bytes, rest: str) -> bytes:
    """`encoded` with the original fields put back where they still apply; as it is for a bad rest."""
    try:
        data = base64.b64decode(rest, validate=True)
        parts = {f.number: data[f.start : f.end] for f in fields(data)}
        before, after = split(parts.get(_ENCODED, b"")), split(parts.get(_ORIGINAL, b""))
    except (binascii.Error, WireProblem):
        return encoded
    chunks = split(encoded)
    for number in before.keys() | after.keys():
        if chunks.get(number) == before.get(number):
            if number in after:
                chunks[number] = after[number]
            else:
                del chunks[number]
    return join(chunks)
