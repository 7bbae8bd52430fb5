"""The instructions of PTX: a row for each form, by opcode."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mlirhlo.dialects.ptx import rows_arithmetic, rows_control, rows_matrix, rows_memory
from mlirhlo.dialects.ptx.forms import Form

ROWS: tuple[Form, ...] = (
    *rows_arithmetic.ROWS,
    *rows_memory.ROWS,
    *rows_control.ROWS,
    *rows_matrix.ROWS,
)
"""Every form."""


def _by_opcode() -> Mapping[str, tuple[Form, ...]]:
    found: dict[str, list[Form]] = {}
    for form in ROWS:
        found.setdefault(form.opcode, []).append(form)
    return {opcode: tuple(forms) for opcode, forms in found.items()}


FORMS: Mapping[str, tuple[Form, ...]] = _by_opcode()
"""Forms by opcode."""


@lru_cache(maxsize=4096)
def matches(mnemonic: str) -> tuple[tuple[Form, Mapping[str, str]], ...]:
    """The forms that have the modifiers of a mnemonic, with the choices made; none for an unknown one."""
    opcode, *modifiers = mnemonic.split(".")
    found = [(form, form.match(modifiers)) for form in FORMS.get(opcode, ())]
    return tuple((form, choices) for form, choices in found if choices is not None)


@lru_cache(maxsize=4096)
def canonical(mnemonic: str) -> tuple[str, tuple[str, ...]]:
    """Opcode and modifiers in the documented order; as they are written where no form has them."""
    opcode, *modifiers = mnemonic.split(".")
    for form, choices in matches(mnemonic):
        return opcode, form.ordered(choices)
    return opcode, tuple(modifiers)
