"""HLO text with its kernels written out: in a comment above each call of one, and read back.

/* kernel of %add:
module @add { … }
*/
%add = f32[8,128] custom-call(…), …, backend_config={"custom_call_config":{"body":"(above)",…}}

Bodies of `tpu_custom_call` are base64 in JSON, those of `mosaic_gpu_v2` bytes in a string of MLIR.
"""

from __future__ import annotations

import base64
import re

from mlirhlo.diagnostics import Place, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats import mosaic
    from mlirhlo.mosaic import decode


ABOVE = "(above)"
"""Stands for a body that is written out."""
_INSTRUCTION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<name>(?:ROOT )?%?[\w.\-]+) = "
    r".*\"(?:tpu_custom_call|mosaic_gpu_v2)\".*$",
    re.MULTILINE,
)
_BODY = re.compile(
    r'"body":\s*"(?P<base64>[A-Za-z0-9+/=]+)"|\bmodule = "(?P<bytes>(?:\\.|[^"\\])*)"'
)
_ESCAPE = re.compile(rb'\\([0-9A-Fa-f]{2}|["\\nt])')
_ABOVE = (f'"body":"{ABOVE}"', f'module = "{ABOVE}"')
_LETTERS = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}
_COMMENT = re.compile(
    r"^[ \t]*/\* kernel of (?P<name>[^\n]*):\n(?P<text>.*?)\n[ \t]*\*/\n", re.MULTILINE | re.DOTALL
)


def expand_kernels(text: str) -> str:
    """The text with every kernel in plain sight. Raises `HloError` HLO0700 for bodies that cannot be
    read.
    """

    def expanded(match: re.Match[str]) -> str:
        line, name = match[0], match["name"].removeprefix("ROOT ")
        body = _BODY.search(line)
        if body is None:
            return line
        module = decode.read_kernel(_bytes(body), f"<kernel {name}>")
        kernel = mosaic.print_kernel(module).rstrip("\n").replace("*/", "* /")
        above = _ABOVE[body["bytes"] is not None]
        short = f"{line[: body.start()]}{above}{line[body.end() :]}"
        indent = match["indent"]
        return f"{indent}/* kernel of {name}:\n{kernel}\n{indent}*/\n{short}"

    return _INSTRUCTION.sub(expanded, text)


def _bytes(body: re.Match[str]) -> bytes:
    """What a body spells."""
    if body["bytes"] is None:
        return base64.b64decode(body["base64"])
    text = body["bytes"].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(lambda m: _LETTERS.get(m[1]) or bytes.fromhex(m[1].decode()), text)


def _escaped(data: bytes) -> str:
    """Bytes as MLIR writes them in a string."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return "".join(plain)


def collapse_kernels(text: str, file: str = "<string>") -> str:
    """The text with kernels that are written out put back into their calls.

    Raises `HloError` HLO0710 to HLO0713 for text that is no kernel, at its line of the file, HLO0700 for
    a kernel without a call below it.
    """
    found = _COMMENT.search(text)
    while found is not None:
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
        line = text[found.end() : end]
        if not any(above in line for above in _ABOVE):
            raise error(
                "HLO0700",
                f'the kernel of {found["name"]} has no call with the body "{ABOVE}" below it',
                Place(file, text.count("\n", 0, found.start()) + 1),
                help="leave the comment directly above its custom-call",
            )
        text = f"{text[: found.start()]}{_put_back(text, found, line, file)}{text[end:]}"
        found = _COMMENT.search(text, found.start())
    return text


def _put_back(text: str, found: re.Match[str], line: str, file: str) -> str:
    first = text.count("\n", 0, found.start("text"))
    # Empty lines in front, so that places are those of the whole file.
    module = mosaic.parse_kernel("\n" * first + found["text"], file)
    data = decode.write_stable(module)
    if _ABOVE[1] in line:
        return line.replace(_ABOVE[1], f'module = "{_escaped(data)}"')
    body = base64.b64encode(data).decode()
    if "serialization_format" not in line:
        body += '","serialization_format":"1'
    return line.replace(_ABOVE[0], f'"body":"{body}"')
