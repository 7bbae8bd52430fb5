"""The tools under the corpus' own runner, as its commands are meant to be used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import BIN, CORPUS, environment, needs_shared

RUN = (
    f"{BIN / 'run_hlo_module'} --platform=Interpreter --reference_platform= {{program}}"
    " --input_npz={inputs} --output_npz={outputs}"
)
PARSE = f"{BIN / 'hlo-opt'} {{program}} -o {{outputs}}"

CASES = [
    ("run", RUN, "hlo", "ew_s4_u4|smap_collectives|cond_switch", 3),
    ("run", RUN, "cpu_opt", "ew_s4_u4|smap_halo_stencil", 2),
    ("run", RUN, "spmd", "smap_2d_mesh", 1),
    ("run", RUN, "pb", "smap_collectives", 1),
    ("parse", PARSE, "hlo", "cond_switch|hlo_custom_call_parse", 2),
    ("parse", PARSE, "meta", "donated_sgd", 1),
    ("parse", PARSE, "pb", "smap_collectives", 1),
    ("parse", PARSE, "tpu_opt", "cond_switch", 1),
    ("parse", PARSE, "gpu_opt", "fusion_chain", 1),
]


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "command", "variant", "only", "count"), CASES, ids=lambda v: str(v)[:12]
)
def test_runner(mode: str, command: str, variant: str, only: str, count: int) -> None:
    argv = [sys.executable, str(CORPUS / "run_corpus.py"), "--mode", mode, "--cmd", command]
    argv += ["--variant", variant, "--only", f"^({only})$"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment())
    assert f"{mode} {variant}: {count} of {count} programs pass" in done.stdout, done.stdout
