"""LLVM assembly of a module in units that are compiled, and kept, on their own.

A unit is a kernel with its parallel loops, or a micro-kernel that it calls. Its names are
made of its content, so that the same kernel of another module is the same text: it is found in the cache
under one key. What is left, the entry and its constants, is the last unit.

Functions that are not to be optimised (`optnone`) are cheap only in a text of their own, without the
passes that would leave them alone: `halves`.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlirhlo.runtime.jit import LIGHT

_FUNCTION = re.compile(r"^define (internal )?(.*?) @([\w.$-]+)\((.*)\)( #\d+)? \{$")
_NAME = re.compile(r"@([\w.$-]+)")
_ARGUMENT = re.compile(r" %a\d+")
_PART = re.compile(r"(.+?)(?:_(?:task|rounds|loop)_\d+)+")
"""Loops that were cut out of a function (`loops_to_llvm/parallel.py`)."""
_GROUP = re.compile(r"#(\d+)")
_LEAST_APART = 40
"""Lines that LLVM passes by, in the midst of others, in the time that an object of its own takes."""
_UNIT = "unit"
"""Stands for a unit's name while that is not known."""


@dataclass
class _Function:
    is_internal: bool
    result: str
    arguments: str
    group: str
    body: str

    @functools.cached_property
    def names(self) -> set[str]:
        """What it refers to."""
        return set(_NAME.findall(self.body))


@dataclass(slots=True)
class _Module:
    functions: dict[str, _Function] = field(default_factory=dict[str, _Function])
    globals: dict[str, str] = field(default_factory=dict[str, str])
    declarations: dict[str, str] = field(default_factory=dict[str, str])
    groups: dict[str, str] = field(default_factory=dict[str, str])
    metadata: list[str] = field(default_factory=list[str])


def split(text: str, entry: str) -> list[str]:
    """Assembly of the units, together what `text` is; the one that defines `entry` is the last.

    The text comes from `print_llvm`. It stays whole where functions call each other in circles, or share
    what they may write.
    """
    module = _parsed(text)
    if module is None or entry not in module.functions:
        return [text]
    members = _members(module)
    order = _callees_first(module, members, entry)
    if order is None:
        return [text]
    final: dict[str, str] = {}
    units: dict[str, str] = {}
    for root in order:
        unit = _text(module, root, members[root], final, keeps_name=root == entry)
        name = entry
        if root != entry:
            name = f"k{hashlib.sha256(unit.encode()).hexdigest()[:24]}"
            unit = unit.replace(f"@{_UNIT}_", f"@{name}_")
            name = f"{name}_0"
        final[root] = name
        units[name] = unit
    return list(units.values())


def halves(text: str, least: int = _LEAST_APART) -> list[str]:
    """Assembly of what LLVM is to optimise, and of what it is not; the text itself if that is one of both.

    Fewer lines than `least` that are not to be optimised stay with the others. Functions of one half that the
    other calls are no longer internal.
    """
    module = _parsed(text) if "optnone" in text else None
    if module is None:
        return [text]
    seldom = {number for number, group in module.groups.items() if "optnone" in group}
    light = [name for name, f in module.functions.items() if f.group[1:] in seldom]
    chosen = set(light)
    parts = light, [name for name in module.functions if name not in chosen]
    if not parts[1]:
        return [f"{LIGHT}{text}"]
    if sum(module.functions[name].body.count("\n") for name in light) < least:
        return [text]
    used = [set[str]().union(*(module.functions[n].names for n in names)) for names in parts]
    shared = used[0] & used[1] & module.globals.keys()
    if not light or any(_is_own(module.globals[name]) for name in shared):
        return [text]
    for names, others in zip(parts, reversed(used), strict=True):
        for name in others.intersection(names):
            module.functions[name].is_internal = False
    made = [_assembly(module, names) for names in parts]
    return [made[1], f"{LIGHT}{made[0]}"]


def _is_own(line: str) -> bool:
    """Whether a global is a variable of the module, which only one unit can hold."""
    return " constant " not in line and " external " not in line


def _assembly(module: _Module, names: Sequence[str]) -> str:
    """The functions of these names, and what they need."""
    lines: list[str] = []
    used: dict[str, None] = {}
    groups: dict[str, None] = {}
    for name in names:
        function = module.functions[name]
        used |= dict.fromkeys(sorted(function.names))
        groups[function.group] = None
        linkage = "internal " if function.is_internal else ""
        head = f"define {linkage}{function.result} @{name}({function.arguments}) {function.group}"
        lines += [f"{head} {{", function.body, "}"]
    inside = set(names)
    for name in used:
        if name in module.globals:
            lines.append(module.globals[name])
        elif name in module.declarations:
            lines.append(module.declarations[name])
        elif name not in inside:
            lines.append(_declaration(module.functions[name], name))
    lines += [f"attributes {group} ={module.groups[group[1:]]}" for group in groups if group]
    return "\n".join([*lines, *module.metadata, ""])


def _declaration(callee: _Function, name: str) -> str:
    return f"declare {callee.result} @{name}({_ARGUMENT.sub('', callee.arguments)})"


def _parsed(text: str) -> _Module | None:
    module = _Module()
    # Outside of functions, which end in a line of a brace, a line is an entry.
    for part in text.split("\n}\n"):
        before, opening, rest = part.rpartition("\ndefine ")
        if part.startswith("define "):
            before, opening, rest = "", part[:7], part[7:]
        head, _, body = rest.partition("\n")
        if not opening:
            before = part
        elif (found := _FUNCTION.match(f"define {head}")) is None:
            return None
        else:
            internal, result, name, arguments, group = found.groups()
            group = (group or "").strip()
            module.functions[name] = _Function(bool(internal), result, arguments, group, body)
        for line in before.splitlines():
            if line.startswith(("@", "declare ")):
                (name, *_) = _NAME.findall(line) or [""]
                if not name or '@"' in line.partition("=")[0]:
                    return None  # a quoted name
                (module.globals if line[0] == "@" else module.declarations)[name] = line
            elif line.startswith("attributes "):
                (number,) = _GROUP.findall(line)
                module.groups[number] = line.partition("=")[2]
            elif line.startswith("!"):
                module.metadata.append(line)
            elif line:
                return None
    return module


def _members(module: _Module) -> dict[str, list[str]]:
    """By the function that a unit is named after, the functions in it."""
    found: dict[str, list[str]] = {}
    for name, function in module.functions.items():
        part = _PART.fullmatch(name) if function.is_internal else None
        root = part[1] if part is not None and part[1] in module.functions else name
        found.setdefault(root, []).append(name)
    return found


def _callees_first(
    module: _Module, members: Mapping[str, Sequence[str]], entry: str
) -> list[str] | None:
    """Units in the order in which they can be named; None for circles and shared variables."""
    owner = {name: root for root, names in members.items() for name in names}
    needs: dict[str, set[str]] = {}
    writers: dict[str, str] = {}
    for root, names in members.items():
        used = set[str]().union(*(module.functions[name].names for name in names))
        needs[root] = {owner[name] for name in used & owner.keys()} - {root}
        for name in used & module.globals.keys():
            if _is_own(module.globals[name]) and writers.setdefault(name, root) != root:
                return None
    order: list[str] = []
    left = dict(needs)
    while left:
        ready = [root for root, needed in left.items() if not needed & left.keys()]
        if not ready:
            return None
        order += ready
        for root in ready:
            del left[root]
    order.remove(entry)
    return [*order, entry]


def _text(
    module: _Module,
    root: str,
    members: Sequence[str],
    final: Mapping[str, str],
    *,
    keeps_name: bool,
) -> str:
    """A unit under its preliminary name."""
    ordered = [root, *(name for name in members if name != root)]
    names = dict(final)
    if not keeps_name:
        names |= {name: f"{_UNIT}_{at}" for at, name in enumerate(ordered)}
    groups: dict[str, int] = {}
    lines: list[str] = []
    used: dict[str, None] = {}

    def renamed(found: re.Match[str]) -> str:
        return f"@{names.get(found[1], found[1])}"

    for name in ordered:
        function = module.functions[name]
        used |= dict.fromkeys(sorted(function.names))
        linkage = "" if name == root else "internal "
        group = function.group[1:]
        number = f" #{groups.setdefault(group, len(groups))}" if group else ""
        arguments = f"({function.arguments})"
        lines.append(
            f"define {linkage}{function.result} @{names.get(name, name)}{arguments}{number} {{"
        )
        lines += [_NAME.sub(renamed, function.body), "}"]
    bodies = len(lines)
    for name in used:
        if name in module.globals:
            lines.append(module.globals[name])
        elif name in module.declarations:
            lines.append(module.declarations[name])
        elif name not in members:
            lines.append(_declaration(module.functions[name], names[name]))
    # Functions of one content have become one, which is declared once.
    lines = [*lines[:bodies], *dict.fromkeys(lines[bodies:])]
    lines += [f"attributes #{number} ={module.groups[group]}" for group, number in groups.items()]
    return "\n".join([*lines, *module.metadata, ""])
