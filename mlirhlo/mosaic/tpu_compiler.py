"""Asks the real TPU compiler about kernels, without a TPU: libtpu compiles for a topology by name.

The compiler runs in a child process, because it ends the process on some kernels; the child takes as many
kernels as it survives. Needs the packages jax and libtpu.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from mlirhlo.diagnostics import error

TOPOLOGIES = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}
"""The smallest topology with four chips or so, by the generation of the chip."""

_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",  # no TPU client is ever made
    "TPU_SKIP_MDS_QUERY": "1",  # no metadata server is asked
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # no lock file
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel for one topology."""

    config: str
    """The `backend_config` of its call."""
    operands: Sequence[tuple[str, Sequence[int]]]
    """Element types as numpy or ml_dtypes name them, and shapes, of one device."""
    results: Sequence[tuple[str, Sequence[int]]]
    aliases: Sequence[tuple[int, int]] = ()
    devices: int = 1
    has_side_effects: bool = False
    topology: str = "v5e:2x2"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the compiler says of a job."""

    is_accepted: bool
    message: str = ""
    vmem_bytes: int = 0
    """VMEM that the kernel uses, where it is accepted."""


def is_available() -> bool:
    """Whether jax and libtpu are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("jax", "libtpu"))


def compile_all(jobs: Sequence[Job], flags: Iterable[str] = ()) -> list[Verdict]:
    """One verdict a job. `flags` are more of `LIBTPU_INIT_ARGS`.

    Raises `HloError` HLO0739 when jax or libtpu is missing.
    """
    if not is_available():
        raise error(
            "HLO0739",
            "the TPU compiler is not installed here",
            help="pip install jax libtpu: no TPU is needed to compile",
        )
    found: list[Verdict] = []
    while len(found) < len(jobs):
        answers, end = _run_child(jobs[len(found) :], flags)
        found += answers
        if len(found) < len(jobs):
            found.append(Verdict(False, f"the compiler ended its process: {end}"))
    return found


def _run_child(jobs: Sequence[Job], flags: Iterable[str]) -> tuple[list[Verdict], str]:
    more = " ".join([os.environ.get("LIBTPU_INIT_ARGS", ""), *flags]).strip()
    child = subprocess.run(
        [sys.executable, "-m", "mlirhlo.mosaic.tpu_compiler"],
        input=json.dumps([asdict(job) for job in jobs]),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**_ENVIRONMENT, **os.environ, **_ENVIRONMENT, "LIBTPU_INIT_ARGS": more},
    )
    lines = [line[1:] for line in child.stdout.split("\n") if line.startswith("\x1e")]
    fatal = re.search(r"^F\d+ \S+ +\d+ (.*)", child.stderr, re.MULTILINE)
    last = fatal[1] if fatal else child.stderr.strip().rsplit("\n", 1)[-1]
    return [Verdict(**json.loads(line)) for line in lines], last or f"status {child.returncode}"


def _compile(job: dict[str, Any]) -> Verdict:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    described: Any = cast(Any, topologies).get_topology_desc(
        platform="tpu", topology_name=job["topology"]
    )
    tpus = described.devices
    count = job["devices"]
    if count > len(tpus):
        return Verdict(False, f"{job['topology']} has {len(tpus)} devices, not {count}")
    spec = PartitionSpec("x") if count > 1 else PartitionSpec()
    sharding = NamedSharding(Mesh(np.array(tpus[:count]), ("x",)), spec)

    def struct(kind: str, shape: Sequence[int], **more: Any) -> Any:
        return jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(getattr(jnp, kind)), **more)

    outs = [struct(*one) for one in job["results"]]

    def call(*args: Any) -> Any:
        return jax.ffi.ffi_call(
            "tpu_custom_call",
            outs,
            has_side_effect=job["has_side_effects"],
            input_output_aliases=dict(job["aliases"]),
            custom_call_api_version=1,
            legacy_backend_config=job["config"],
        )(*args)

    function: Any = call
    if count > 1:
        mesh = sharding.mesh
        function = jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    args = [
        struct(kind, [shape[0] * count, *shape[1:]] if shape else [], sharding=sharding)
        for kind, shape in job["operands"]
    ]
    lowered = cast(Any, jax).jit(function, out_shardings=sharding).trace(*args)
    try:
        text = lowered.lower(lowering_platforms=("tpu",)).compile().as_text() or ""
    except Exception as problem:  # noqa: BLE001  (the compiler reports through many types)
        return Verdict(False, str(problem).strip())
    used = re.search(r'used_scoped_memory_configs":\[\{"memory_space":"1"[^}]*"size":"(\d+)"', text)
    return Verdict(True, "", int(used[1]) if used else 0)


def _child() -> None:
    """Answers each job of standard input by a line of standard output."""
    out = sys.stdout
    for job in json.load(sys.stdin):
        out.write("\x1e" + json.dumps(asdict(_compile(job))) + "\n")
        out.flush()


if __name__ == "__main__":
    _child()
