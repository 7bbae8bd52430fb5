#!/usr/bin/env python3
"""Compiles kernels with Triton and nvcc, reads and judges their PTX.

    python -m venv peers
    peers/bin/pip install triton numpy nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl
    tools/ptx_of_others.py --peers=peers --out=peers/ptx

Every file has to be read, printed back to the same tokens, read again as the same module, survive as MLIR text, and
be judged as NVIDIA's assembler judges it. No card is needed. What is in the folder already is not compiled again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from xdsl.context import Context  # noqa: E402
from xdsl.dialects.builtin import Builtin  # noqa: E402
from xdsl.parser import Parser  # noqa: E402
from xdsl.printer import Printer  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.ptx import PTX, ModuleOp  # noqa: E402
from mlirhlo.formats.ptx import flat, parse_ptx, print_ptx, verify_ptx  # noqa: E402

SOURCES = ROOT / "tools" / "ptx_sources"
ARCHITECTURES = ("sm_80", "sm_90a")
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[\w$%]+|\S', re.DOTALL)


def tokens(text: str) -> list[str]:
    """The tokens of a text, without comments and white space."""
    return [token for token in _TOKEN.findall(text) if not token.startswith(("//", "/*"))]


def compile_all(peers: Path, out: Path) -> None:
    """PTX of every source, for every architecture."""
    out.mkdir(parents=True, exist_ok=True)
    (nvcc,) = peers.glob("lib/python*/site-packages/nvidia/cu*/bin/nvcc")
    for source in sorted(SOURCES.glob("*.cu")):
        for architecture in ARCHITECTURES:
            target = out / f"cuda_{source.stem}_{architecture}.ptx"
            if not target.exists():
                command = [nvcc, f"-arch={architecture}", "-ptx", source, "-o", target]
                subprocess.run([*command, "-w"], check=False)
    subprocess.run([peers / "bin" / "python", SOURCES / "triton_kernels.py", out], check=False)


def problems(text: str, name: str) -> tuple[list[str], ModuleOp | None]:
    """What is wrong with reading, printing and judging one file."""
    found: list[str] = []
    try:
        module = parse_ptx(text, name)
    except HloError as problem:
        return [str(problem)], None
    printed = print_ptx(module)
    if tokens(printed) != tokens(text):
        found.append("printed back to other tokens")
    if not module.is_structurally_equivalent(parse_ptx(printed)):
        found.append("printed and read again, the module differs")
    stream = StringIO()
    Printer(stream).print_op(module)
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PTX)
    if not module.is_structurally_equivalent(Parser(context, stream.getvalue()).parse_op()):
        found.append("as MLIR text it differs")
    found += map(str, verify_ptx(module, text))
    return found, module


def takes(ptxas: Path, file: Path, text: str) -> bool:
    """Whether NVIDIA's assembler takes a file."""
    target = re.search(r"\.target\s+(\w+)", text)
    command = [ptxas, f"-arch={target.group(1) if target else ''}", "-c", file, "-o", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=Path, help="a virtual environment with the wheels")
    parser.add_argument("--out", type=Path, required=True, help="folder of the PTX")
    parser.add_argument("--assemble", action="store_true", help="ask ptxas of --peers, too")
    options = parser.parse_args()
    if options.assemble and options.peers is None:
        parser.error("--assemble needs --peers")
    if options.peers is not None:
        compile_all(options.peers, options.out)
    kernels = instructions = lines = wrong = 0
    seconds = 0.0
    for file in sorted(options.out.glob("*.ptx")):
        text = file.read_text()
        found, module = problems(text, str(file))
        if options.assemble and options.peers is not None:
            (ptxas,) = options.peers.glob("lib/python*/site-packages/nvidia/cu*/bin/ptxas")
            if not takes(ptxas, file, text):
                print(f"{file.name}: ptxas refuses it")
        wrong += bool(found)
        for one in found:
            print(f"{file.name}: {one}")
        if module is not None:
            start = time.process_time()
            parse_ptx(text)
            seconds += time.process_time() - start
            lines += text.count("\n")
            kernels += sum(function.is_entry for function in module.functions)
            defined = [one for one in module.functions if not one.is_declaration]
            instructions += sum(len(flat(function).instructions) for function in defined)
    print(
        f"{kernels} kernels, {instructions} instructions, {wrong} files with something wrong; "
        f"read at {lines / max(seconds, 1e-9):,.0f} lines a second"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
