"""The forms a kernel is written in, and the check that all of them say the same."""

from __future__ import annotations

from difflib import unified_diff
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.mosaic.printer import Form, print_kernel
from mlirhlo.formats.mosaic.stable import VERSION
from mlirhlo.mosaic.decode import read_kernel, write_stable

FORMS = ("pretty", "generic", "stable", "bytecode")
"""What a kernel can be written as; `bytecode` is in the stable form."""


def render(
    module: ModuleOp, form: str, *, keep_names: bool = True, debug_info: bool = False
) -> bytes:
    """The module in one of `FORMS`."""
    if form == "bytecode":
        return write_stable(module)
    text = print_kernel(module, form=cast(Form, form), keep_names=keep_names, debug_info=debug_info)
    return text.encode("utf-8", "surrogateescape")


def check_roundtrip(module: ModuleOp, name: str) -> None:
    """Raises `HloError` HLO0714 where a form of the module is read as another module."""
    wanted = _text(module)
    for form in FORMS:
        try:
            found = _text(read_kernel(render(module, form), f"<{name} in {form} form>"))
        except HloError as problem:
            raise _differs(name, form, problem.diagnostics[0].message) from None
        if found != wanted:
            changed = unified_diff(wanted.splitlines(), found.splitlines(), n=0, lineterm="")
            lines = [line for line in changed if line[:1] == "+" and line[:3] != "+++"]
            raise _differs(name, form, lines[0][1:].strip() if lines else "lines are missing")


def _text(module: ModuleOp) -> str:
    """The generic form without the version, which the stable form states anew."""
    stated = module.attributes.pop(VERSION, None)
    text = print_kernel(module, form="generic")
    if stated is not None:
        module.attributes[VERSION] = stated
    return text


def _differs(name: str, form: str, what: str) -> HloError:
    return error(
        "HLO0714",
        f"the {form} form of this kernel is not read as the same kernel: {what}",
        Place(name, 1, 1),
        help="this is a defect of mlirhlo; please report it with the kernel",
    )
