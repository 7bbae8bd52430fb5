"""Counts what the sources repeat, hide or leave without a test, against the bounds in `house.toml` beside this file.

python tools/dev/house.py                 # every count with its bound; status 1 where one is above it
python tools/dev/house.py --list tables   # what is counted, one line each
python tools/dev/house.py --renew         # writes today's counts as the bounds, lower ones only
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "mlirhlo"
BOUNDS = Path(__file__).with_suffix(".toml")
TABLES = (
    *(f"dialects/{name}/" for name in ("hlo", "stablehlo", "chlo", "mhlo", "sdy")),
    "integrations/torch/aten/",
)
"""Where the tables of opcodes are, which may name them; PyTorch's operations have some of the names."""
REASONS: Mapping[str, str] = {
    "lowering/cpu/from_structured.py": "which kinds are moved to another way of compiling them, yet",
    "lowering/llvm_text.py": "LLVM's instructions, some of which are called as opcodes are",
    "lowering/nvvm_intrinsics.py": "NVVM's intrinsics, some of which are called as opcodes are",
    "mosaic/language/outside/estimate.py": "operations of MLIR's math dialect",
    "rewrites/algsimp/arithmetic/convert.py": "the left side of one rule",
    "rewrites/algsimp/arithmetic/minmax.py": "the left side of one rule",
    "rewrites/settled.py": "how far the rules of one pass look, and through what",
}
"""Files that hold a set of opcodes, and why none of the columns says it."""
MIN_NAMES = 3
"""Opcodes in a display that make it a table."""
MAX_LINES = 80
"""That a function of the package may have."""
WORDS = ("room", "place", "home", "asking", "turned", "spread", "wake", "settled", "afresh", "dear")
NAMES = ("found", "given", "made", "wanted")
"""Words that say what happened to a value instead of what it is."""
DIALECTS = ("hlo", "stablehlo", "chlo", "sdy", "tpu")


@cache
def sources() -> Mapping[str, tuple[str, ast.Module]]:
    """Text and tree of every source file of the package by its path in it, generated ones left out."""
    texts = {
        str(path.relative_to(PACKAGE)): path.read_text()
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.stem.endswith("_pb2")
    }
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


_KINDS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Import,
    ast.ImportFrom,
    ast.Set,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Call,
)
"""Nodes that some count looks at."""


@cache
def _nodes(name: str) -> list[tuple[Any, bool]]:
    """The nodes of `_KINDS` in a file, and whether each is in a function."""
    nodes: list[tuple[Any, bool]] = []

    def visit(node: ast.AST, is_inner: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _KINDS):
                nodes.append((child, is_inner))
            if not isinstance(child, ast.Name | ast.Constant):
                visit(child, is_inner or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(sources()[name][1], False)
    return nodes


def _functions(name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n, _ in _nodes(name) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


# Tables of opcodes


@cache
def _opcodes() -> tuple[frozenset[str], frozenset[str]]:
    """Names of the opcodes in both spellings, and the names of their classes."""
    from mlirhlo.dialects.hlo.ops.base import OP_CLASSES
    from mlirhlo.dialects.hlo.table import OPCODES

    names = set(OPCODES) | {name.replace("-", "_") for name in OPCODES}
    return frozenset(names), frozenset(cls.__name__ for cls in OP_CLASSES.values())


def _names_opcode(node: ast.expr | None, others: set[str]) -> bool:
    names, classes = _opcodes()
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r"^(stable|m)?hlo\.", "", text) in names
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in classes and name not in others
        case _:
            return False


def _others(name: str) -> set[str]:
    """What a file imports from dialects other than HLO: classes there have some of the same names."""
    return {
        alias.asname or alias.name
        for node, _ in _nodes(name)
        if isinstance(node, ast.ImportFrom) and ".dialects." in f".{node.module}"
        for alias in node.names
        if ".dialects.hlo" not in f".{node.module}"
    }


def _is_dispatch(display: ast.expr) -> bool:
    """Whether it maps opcodes to functions, or to calls on functions: code by opcode states no fact about opcodes."""

    def is_function(value: ast.expr) -> bool:
        match value:
            case ast.Lambda():
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name.lstrip("_")[:1].islower()
            case ast.Call(func=func, args=[first, *_]):
                return is_function(func) and is_function(first)
            case _:
                return False

    return isinstance(display, ast.Dict) and all(map(is_function, display.values))


def _entries(display: ast.expr) -> list[ast.expr | None]:
    match display:
        case ast.Set(elts=entries) | ast.Tuple(elts=entries) | ast.List(elts=entries):
            return list(entries)
        case ast.Dict(keys=keys):
            return list(keys)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return [ast.Constant(word) for word in text.split()]
        case _:
            return []


@cache
def _displays() -> list[tuple[str, ast.expr, int, bool]]:
    """Displays that are mostly opcodes: their file, how many, and whether a module or class holds them."""
    displays: list[tuple[str, ast.expr, int, bool]] = []
    for name in sources():
        if name.startswith(TABLES) or "simulator" in name:
            continue
        others = _others(name)
        for node, is_inner in _nodes(name):
            if isinstance(node, ast.expr) and (entries := _entries(node)):
                if _is_dispatch(node):
                    continue
                count = sum(_names_opcode(entry, others) for entry in entries)
                if count >= MIN_NAMES and count * 2 >= len(entries):
                    displays.append((name, node, count, not is_inner))
    return displays


def _table_list(is_module: bool, *kinds: type[ast.expr]) -> list[str]:
    return [
        f"{name}:{node.lineno} {count} {ast.unparse(node)[:90]}"
        for name, node, count, held in _displays()
        if held == is_module and isinstance(node, kinds)
    ]


SEQUENCES = (ast.Set, ast.Tuple, ast.List, ast.Call)


def table_entries() -> list[str]:
    """An item for each opcode in a table that is no table of opcodes."""
    return [name for name, _, count, held in _displays() if held for _ in range(count)]


# Operations


def plain_ops() -> list[str]:
    """Operations of our dialects whose traits say neither that they are pure nor what they affect."""
    from xdsl.traits import IsTerminator, MemoryEffect, SymbolOpInterface

    from mlirhlo.universe import UNIVERSE

    factories = {**UNIVERSE.all_dialects}
    missing: list[str] = []
    for dialect in DIALECTS:
        if dialect not in factories:
            continue
        for op in factories[dialect]().operations:
            if not any(
                isinstance(t, MemoryEffect | IsTerminator | SymbolOpInterface) for t in op.traits
            ):
                missing.append(op.name)
    return sorted(missing)


# Imports


def _imports(name: str, nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import of ours; a name that is imported from a module comes with it."""
    package = ["mlirhlo", *Path(name).with_suffix("").parts]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("mlirhlo"))
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            stem = ".".join(filter(None, (base, node.module)))
            if stem.split(".")[0] == "mlirhlo":
                yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)


def late_imports() -> list[str]:
    """Statements in functions that import our own modules."""
    lines: list[str] = []
    for name in sources():
        own = {line for line, _ in _imports(name, (n for n, is_inner in _nodes(name) if is_inner))}
        lines += [f"{name}:{line}" for line in sorted(own)]
    return lines


def _file_of(target: str) -> str:
    parts = target.split(".")[1:]
    for part in parts:
        if part.endswith("_pb2"):
            return part  # a generated module, which imports none of ours
    while parts:
        path = "/".join(parts)
        for name in (f"{path}.py", f"{path}/__init__.py"):
            if name in sources():
                return name
        parts.pop()
    return "__init__.py"


def _graph() -> dict[str, set[str]]:
    """Files by what they import, in functions and for types too."""
    return {
        name: {_file_of(target) for _, target in _imports(name, (n for n, _ in _nodes(name)))}
        & sources().keys() - {name}
        for name in sources()
    }


def circles() -> list[str]:
    """Groups of files that import each other, other than the ops of one dialect."""
    graph = _graph()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in graph[name]:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            at = stack.index(name)
            groups.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for name in graph:
        if name not in index:
            visit(name)
    return sorted(" ".join(g) for g in groups if len(g) > 1 and not _in_one_dialect(g))


def _in_one_dialect(group: list[str]) -> bool:
    folders = {"/".join(Path(name).parts[:2]) for name in group}
    return len(folders) == 1 and group[0].startswith("dialects/")


# Hidden state, sizes, tests


def caches() -> list[str]:
    """Functions whose results are kept for good, whatever they are called with."""
    lines: list[str] = []
    for name in sources():
        for function in _functions(name):
            arguments = function.args
            if not (arguments.args or arguments.posonlyargs or arguments.kwonlyargs):
                continue  # a constant that is computed late
            for decorator in function.decorator_list:
                if re.search(
                    r"^(functools\.)?(cache$|lru_cache\(.*None\))", ast.unparse(decorator)
                ):
                    lines.append(f"{name}:{function.lineno} {function.name}")
    return lines


def function_lines() -> list[tuple[int, str]]:
    """Lines and location of every function, the longest first."""
    return sorted(
        (
            ((f.end_lineno or f.lineno) - f.lineno + 1, f"{name}:{f.lineno} {f.name}")
            for name in sources()
            for f in _functions(name)
        ),
        reverse=True,
    )


def long_functions() -> list[str]:
    """Functions over `MAX_LINES` lines."""
    return [f"{lines:4} {where}" for lines, where in function_lines() if lines > MAX_LINES]


def _ninety_nine() -> list[str]:
    lengths = function_lines()
    return [f"{lengths[len(lengths) // 100][0]} lines"] * lengths[len(lengths) // 100][0]


def stages_without_lit() -> list[str]:
    """Stages of the pipeline of kernels at which no lit file stops."""
    from mlirhlo.mosaic.pipeline import STAGES

    text = "\n".join(path.read_text() for path in (ROOT / "test/lit").rglob("*.mlir"))
    return [s.name for s in STAGES if not re.search(rf"stop-after={s.name}(?![\w-])", text)]


def full_folders() -> list[str]:
    """Folders with more than 25 files of ours."""
    counts: dict[str, int] = {}
    for name in sources():
        folder = str(Path(name).parent)
        counts[folder] = counts.get(folder, 0) + 1
    return [f"{count:3} {folder}" for folder, count in sorted(counts.items()) if count > 25]


def _words(words: tuple[str, ...]) -> list[str]:
    pattern = re.compile(rf"(?<![a-zA-Z])(?:{'|'.join(words)})[sd]?(?![a-zA-Z])", re.IGNORECASE)
    return [
        f"{name}:{number} {line.strip()[:90]}"
        for name, (text, _) in sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        for _ in pattern.finditer(line)
    ]


COUNTS: Mapping[str, tuple[str, Callable[[], list[str]]]] = {
    "sets": ("sets of opcodes outside the tables", lambda: _table_list(True, *SEQUENCES)),
    "maps": ("dictionaries by opcode outside the tables", lambda: _table_list(True, ast.Dict)),
    "entries": ("opcodes in both", table_entries),
    "inline": (
        "sets of opcodes in functions",
        lambda: _table_list(False, *SEQUENCES, ast.Dict),
    ),
    "plain-ops": ("operations without effects or purity in their traits", plain_ops),
    "late-imports": ("own imports in functions", late_imports),
    "circles": ("circles of files", circles),
    "caches": ("caches without a bound", caches),
    "long-functions": (f"functions over {MAX_LINES} lines", long_functions),
    "p99": ("lines of a function, 99th percentile", _ninety_nine),
    "stages": ("stages of kernels without a lit file", stages_without_lit),
    "folders": ("folders with more than 25 files", full_folders),
    "words": ("words to go", lambda: _words(WORDS)),
    "names": ("found, given, made, wanted", lambda: _words(NAMES)),
}
"""Each count: what it is of, and the items."""


def bounds() -> dict[str, int]:
    """The greatest value each count may have."""
    return tomllib.loads(BOUNDS.read_text())


def main() -> int:
    """Prints the counts, or the items of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", choices=COUNTS, metavar="COUNT", help=", ".join(COUNTS))
    parser.add_argument("--renew", action="store_true")
    options = parser.parse_args()
    if options.list:
        print(*COUNTS[options.list][1](), sep="\n")
        return 0
    limits = bounds() if BOUNDS.exists() else {}
    counts = {name: len(items()) for name, (_, items) in COUNTS.items()}
    for name, (title, _) in COUNTS.items():
        print(f"{counts[name]:6}  of {limits.get(name, '-'):>5}  {name:15} {title}")
    print(f"{sum(t.count(chr(10)) for t, _ in sources().values()):6}  lines of the package")
    if options.renew:
        lower = {name: min(count, limits.get(name, count)) for name, count in counts.items()}
        BOUNDS.write_text("".join(f"{name} = {count}\n" for name, count in lower.items()))
    return int(any(counts[name] > limits.get(name, counts[name]) for name in COUNTS))


if __name__ == "__main__":
    sys.exit(main())
