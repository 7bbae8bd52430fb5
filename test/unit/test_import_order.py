"""Imports between the rooms of the package go one way; docs/architecture.md draws the order."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, run

PACKAGE = ROOT / "mlirhlo"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"diagnostics", "importing", "nesting", "_version"}),
    frozenset({"dialects"}),
    frozenset({"analysis"}),
    frozenset({"formats", "interp"}),
    frozenset({"rewrites"}),
    frozenset({"lowering", "mosaic"}),
    frozenset({"debug", "integrations", "numpy", "runtime", "simulator"}),
    frozenset({"aot"}),
    frozenset({"cli"}),
)
"""From the bottom up; a room may import itself, its own layer and every lower one."""

FRONT = frozenset({"", "jax", "tensorflow", "torch", "universe", "devtools"})
"""Modules that offer the whole: the public API and the doors of other front ends, the entry point for
xDSL, the developers' tools."""


def layer(room: str) -> int:
    """The height of a room; raises KeyError for one that docs/architecture.md does not know."""
    for height, rooms in enumerate(LAYERS):
        if room in rooms:
            return height
    raise KeyError(room)


def modules() -> list[Path]:
    """Every source file of the package; generated protobuf code imports nothing of ours."""
    return sorted(p for p in PACKAGE.rglob("*.py") if not p.stem.endswith("_pb2"))


def room_of(path: Path) -> str:
    """The first name below the package: 'dialects' for mlirhlo/dialects/hlo/types.py."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and room of each import of ours in a file, also inside functions and type checking."""
    package = ["mlirhlo", *path.relative_to(PACKAGE).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) if node.level else ""
            stem = ".".join(filter(None, (base, node.module)))
            # `from mlirhlo import formats` names a room by its alias.
            names = [f"{stem}.{name}" for name in names] if stem == "mlirhlo" else [stem]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "mlirhlo":
                room = rest.partition(".")[0]
                # `from mlirhlo import load` takes a name of the front itself.
                yield node.lineno, room if _is_room(room) else ""


def _is_room(name: str) -> bool:
    return bool(name) and ((PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file())


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_only_downwards(path: Path) -> None:
    room = room_of(path)
    wrong = list[str]()
    for line, target in imported(path):
        if target == room:
            continue
        if target == "cli" and room != "cli":
            allowed = False
        elif room in FRONT:
            allowed = True
        elif target in FRONT:
            # The front offers everything; only those build on it that hand out its objects.
            allowed = room in ("cli", "integrations")
        else:
            allowed = layer(target) <= layer(room)
        if not allowed:
            wrong.append(f"{path.relative_to(ROOT)}:{line}: {room or 'the front'} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_every_room_has_a_place() -> None:
    rooms = {room_of(path) for path in modules()} - FRONT
    unknown = sorted(room for room in rooms if not any(room in rooms_ for rooms_ in LAYERS))
    assert not unknown, f"give these a layer here and in docs/architecture.md: {unknown}"


def test_order_agrees_with_architecture_page() -> None:
    """The page names each room of the order, so that reader and test cannot part."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    missing = [r for rooms in LAYERS for r in rooms if f"`{r}" not in text and r != "_version"]
    assert not missing


def test_a_wrong_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of imports sees every spelling."""
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "rewrites").mkdir()
    (tmp_path / "dialects").mkdir()
    source = tmp_path / "dialects" / "op.py"
    source.write_text(
        "import mlirhlo.rewrites.dce\n"
        "from mlirhlo.rewrites import dce\n"
        "from mlirhlo import rewrites\n"
        "from ..rewrites import dce\n"
        "def late():\n    from mlirhlo.rewrites.dce import DcePass\n"
    )
    assert sorted(imported(source)) == [(line, "rewrites") for line in (1, 2, 3, 4, 6)]


FIRST_CALLS = """
import sys, threading, mlirhlo
sys.setswitchinterval(0.00005)
HLO = "ENTRY e { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }"
STABLEHLO = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
CALLS = (
    lambda: mlirhlo.parse(HLO)([1, 2, 3, 4]),
    lambda: mlirhlo.parse(STABLEHLO).problems(),
    lambda: mlirhlo.parse(HLO).opt("algsimp,fusion,layout-assignment").as_text("stablehlo"),
    lambda: mlirhlo.compile(mlirhlo.parse(HLO)),
)
done, together = [], threading.Barrier(8)

def call(number):
    together.wait()
    CALLS[number % len(CALLS)]()
    done.append(number)

threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(done))
"""


def test_first_calls_of_several_threads() -> None:
    for _ in range(3):
        done = run(sys.executable, "-c", FIRST_CALLS)
        assert done.out.split() == ["8"], done.err
