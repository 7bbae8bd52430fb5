"""`--list-passes`, `--help-passes`, `--help-pass NAME`: passes, their pages, options and rules."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from itertools import pairwise

from xdsl.passes import ModulePass, get_pass_option_infos

from mlirhlo.rewrites.pipeline import parse_pipeline
from mlirhlo.rewrites.registry import PassInfo, list_passes
from mlirhlo.rewrites.rules import RulePass


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a pass."""

    name: str
    """As it is written in a pipeline."""
    type: str
    default: str
    meaning: str


def listing(*, pages: bool, as_json: bool) -> str:
    """All passes: one line each, with `pages` the whole docstring and the options."""
    found = list(list_passes().values())
    if as_json:
        rows = [
            {
                "name": p.name,
                "summary": p.summary,
                "page": _page(p),
                "options": {o.name: o.type for o in options_of(p.factory())},
            }
            for p in found
        ]
        return json.dumps(rows, indent=1)
    if pages:
        return "\n\n".join(map(_shown_page, found))
    # The few long names stand out of the column instead of moving it.
    width = min(20, max((len(p.name) for p in found), default=0))
    return "\n".join(f"{p.name:<{width}}  {p.summary}" for p in found)


def help_of(name: str) -> str:
    """The page of one pass. Raises `HloError` HLO0401 for an unknown one."""
    (pass_,) = parse_pipeline(name)
    return _shown_page(list_passes()[pass_.name], rules=True)


def options_of(cls: type[ModulePass]) -> tuple[Option, ...]:
    """Options of a pass, in the order of their fields; meanings are the docstrings under these."""
    notes = _field_notes(cls)
    return tuple(
        Option(
            option.name.replace("_", "-"),
            option.expected_type.strip("'"),
            "" if option.default_value in (None, "()") else str(option.default_value),
            notes.get(option.name, ""),
        )
        for option in get_pass_option_infos(cls)
    )


def _field_notes(cls: type) -> dict[str, str]:
    notes: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        try:
            ours = owner.__module__.startswith("mlirhlo")
            source = inspect.getsource(owner).split("\n") if ours else []
        except OSError:
            source = []
        for line, following in pairwise(source):
            name, colon, _ = line.strip().partition(":")
            if colon and name.isidentifier() and following.strip().startswith('"""'):
                notes[name] = following.strip().strip('"').rstrip()
    return notes


def _page(info: PassInfo) -> str:
    return inspect.cleandoc(info.factory().__doc__ or "")


def _shown_page(info: PassInfo, *, rules: bool = False) -> str:
    cls = info.factory()
    lines = [info.name, *(f"    {line}".rstrip() for line in _page(info).split("\n"))]
    if options := options_of(cls):
        lines.append("    Options:")
    for option in options:
        default = f" = {option.default}" if option.default else ""
        meaning = f"  {option.meaning}" if option.meaning else ""
        lines.append(f"      {option.name}: {option.type}{default}{meaning}")
    if rules and issubclass(cls, RulePass):
        lines.append("    Rules:")
        lines += [f"      {rule.name}: {rule.equation}" for rule in cls.rules]
    return "\n".join(lines)
