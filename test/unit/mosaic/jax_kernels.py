"""JAX's own TPU kernels, read from the installed package, with other imports: nothing else of them changes."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

_PACKAGE = "moved_tpu_kernels"
_IMPORTS = (
    (r"jax\.experimental\.pallas\.ops\.tpu", _PACKAGE),
    (r"from jax\.experimental import pallas\b", "from mlirhlo import mosaic"),
    (r"jax\.experimental\.pallas", "mlirhlo.mosaic"),
    (r"import jax$", "from mlirhlo import mosaic as jax"),
    (r"from jax(\._src)? import", "from mlirhlo.mosaic import"),
    (r"\bjax(\._src)?\.", "mlirhlo.mosaic."),
)
"""What import lines say in the place of what they said."""


def _moved(line: str) -> str:
    if re.match(r"\s*(from|import) ", line):
        for pattern, instead in _IMPORTS:
            line = re.sub(pattern, instead, line)
    return line


def load(name: str, folder: Path) -> ModuleType:
    """The module `jax.experimental.pallas.ops.tpu.<name>` on this package; `folder` keeps the text."""
    if str(folder) not in sys.path:
        spec = importlib.util.find_spec("jax.experimental.pallas.ops.tpu")
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent
        for file in source.rglob("*.py"):
            to = folder / _PACKAGE / file.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            lines = file.read_text().splitlines()
            to.write_text("\n".join(map(_moved, lines)) + "\n")
        sys.path.insert(0, str(folder))
    return importlib.import_module(f"{_PACKAGE}.{name}")
