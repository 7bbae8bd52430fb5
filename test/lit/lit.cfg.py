# ruff: noqa: F821
# pyright: reportUndefinedVariable=false
"""Lit's settings: `lit test/lit` runs the tools of the environment that lit itself runs in."""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import tool_server  # noqa: E402
from lit_in_process import InProcess  # noqa: E402
from support import BIN, CORPUS, DATA, ROOT, SHARED, environment  # noqa: E402

config.name = "mlirhlo"
config.test_format = InProcess(execute_external=False)
config.suffixes = [".mlir", ".hlo", ".txt", ".test", ".ptx"]
config.excludes = ["Inputs"]
config.test_source_root = HERE
config.test_exec_root = lit_config.params.get("exec_root", str(ROOT / "build" / "lit"))

# A test says itself which XLA flags it needs; those of the caller's shell stay out.
ours = environment()
for name in ("PATH", "NO_COLOR", "COLUMNS", "HOME", "TMPDIR", "MLIRHLO_SHARED"):
    if name in ours:
        config.environment[name] = ours[name]

config.substitutions += [
    ("%data", str(DATA)),
    ("%shared", str(SHARED)),
    ("%python", sys.executable),
    # LLVM's spelling works too, so that tests written for it run unchanged.
    (r"\bFileCheck\b", "filecheck"),
]
TOOLS = (
    "hlo-opt hlo-translate hlo-view hlo-dump hlo-reduce hlo-bisect hlo-diff hlo-cut hlo-cost hlo-fuzz "
    "mlirhlo-lsp mosaic-opt "
    "ptx-opt ptx-run run_hlo_module run-hlo-module filecheck hlo-aot"
)
for tool in TOOLS.split():
    if not (BIN / tool).exists():
        lit_config.warning(f"{tool} is not installed in {BIN}; run `pip install -e '.[test]'`")

# Tools come from a process that has them loaded; `-Dtools=` names a folder of one that runs.
folder = lit_config.params.get("tools")
if folder is None:
    folder = tempfile.mkdtemp(prefix="lit-tools-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = tool_server.start(Path(folder))
    atexit.register(server.communicate)
config.environment["PATH"] = os.pathsep.join([folder, config.environment["PATH"]])

for feature, present in {
    "shared": CORPUS.is_dir(),
    "oracle": importlib.util.find_spec("jaxlib") is not None,
    "cuda": importlib.util.find_spec("pycuda") is not None and shutil.which("nvidia-smi"),
    "graphviz": shutil.which("dot"),
}.items():
    if present:
        config.available_features.add(feature)
