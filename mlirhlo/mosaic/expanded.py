"""HLO text with its kernels written out: in a comment above each `tpu_custom_call`, and read back.

/* kernel of %add:
module @add { … }
*/
%add = f32[8,128] custom-call(…), …, backend_config={"custom_call_config":{"body":"(above)",…}}
"""

from __future__ import annotations

import base64
import re

from mlirhlo.diagnostics import Place, error

ABOVE = "(above)"
"""Stands for a body that is written out."""
_INSTRUCTION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<name>(?:ROOT )?%?[\w.\-]+) = .*\"tpu_custom_call\".*$", re.MULTILINE
)
_BODY = re.compile(r'"body":\s*"([A-Za-z0-9+/=]+)"')
_COMMENT = re.compile(
    r"^[ \t]*/\* kernel of (?P<name>[^\n]*):\n(?P<text>.*?)\n[ \t]*\*/\n", re.MULTILINE | re.DOTALL
)


def expand_kernels(text: str) -> str:
    """The text with every kernel in plain sight. Raises `HloError` HLO0700 for bodies that cannot be
    read.
    """
    from mlirhlo.formats.mosaic import print_kernel
    from mlirhlo.mosaic.decode import read_kernel

    def expanded(match: re.Match[str]) -> str:
        line, name = match[0], match["name"].removeprefix("ROOT ")
        body = _BODY.search(line)
        if body is None:
            return line
        module = read_kernel(base64.b64decode(body[1]), f"<kernel {name}>")
        kernel = print_kernel(module).rstrip("\n").replace("*/", "* /")
        short = f'{line[: body.start()]}"body":"{ABOVE}"{line[body.end() :]}'
        indent = match["indent"]
        return f"{indent}/* kernel of {name}:\n{kernel}\n{indent}*/\n{short}"

    return _INSTRUCTION.sub(expanded, text)


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
        if f'"{ABOVE}"' not in line:
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
    from mlirhlo.formats.mosaic import parse_kernel
    from mlirhlo.mosaic.decode import write_stable

    first = text.count("\n", 0, found.start("text"))
    # Empty lines in front, so that places are those of the whole file.
    module = parse_kernel("\n" * first + found["text"], file)
    body = base64.b64encode(write_stable(module)).decode()
    if "serialization_format" not in line:
        body += '","serialization_format":"1'
    return line.replace(f'"body":"{ABOVE}"', f'"body":"{body}"')
