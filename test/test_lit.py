"""Runs test/lit, so that one pytest command is the whole suite; by hand: `lit test/lit`."""

from pathlib import Path

import pytest
from support import BIN, ROOT, run

LIT = ROOT / "test" / "lit"
SUFFIXES = {".mlir", ".hlo", ".txt", ".test", ".ptx"}


def groups() -> list[str]:
    """Folders that hold lit files themselves: small enough to spread over workers."""
    files = (path for path in LIT.rglob("*") if path.suffix in SUFFIXES)
    folders = {path.parent.relative_to(LIT) for path in files if "Inputs" not in path.parts}
    return sorted(map(str, folders))


@pytest.mark.slow
@pytest.mark.parametrize("group", groups())
def test_lit(group: str, tools: Path, tmp_path: Path) -> None:
    folder = LIT / group
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    done = run(
        *(
            BIN / "lit",
            "-v",
            "-j1",
            "--skip-test-time-recording",
            f"-Dexec_root={tmp_path}",
            f"-Dtools={tools}",
        ),
        *files,
        timeout=1800,
    )
    assert done.code == 0, done.out + done.err
