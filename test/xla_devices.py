"""Programs on several devices of the real XLA:CPU, run by a process of its own.

As a script: reads pickled `(text, inputs, replicas, partitions)` cases from stdin, writes pickled
outputs by case, device and output to stdout. Sharded by hand: every instruction of the entry is
`manual`, so that the partitioner leaves the collectives alone.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

DEVICES = 4

Case = tuple[str, Sequence[Sequence[np.ndarray]], int, int]


def run_cases(cases: Sequence[Case]) -> list[Any]:
    """Outputs of every case, `[device][output]`; a string where XLA refuses."""
    done = subprocess.run(
        [sys.executable, __file__],
        input=pickle.dumps(list(cases)),
        capture_output=True,
        check=True,
        timeout=300,
    )
    return pickle.loads(done.stdout)


def manual(text: str) -> str:
    """The text with every instruction of its entry marked manual."""
    head, entry = text.split("ENTRY", 1)
    lines = entry.split("\n")
    for number, line in enumerate(lines):
        if " = " in line:
            shape = re.match(r"\s*(?:ROOT )?\S+ = (\(.*?\)|\S+) ", line)
            assert shape is not None
            count = len(re.findall(r"\w+\[", shape[1]))
            sharding = "{manual}"
            if shape[1].startswith("("):
                sharding = "{" + ", ".join(["{manual}"] * count) + "}"
            lines[number] = f"{line}, sharding={sharding}"
    return head + "ENTRY" + "\n".join(lines)


def _main() -> None:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jaxlib import _hlo, _jax

    def run(text: str, inputs: Any, replicas: int, partitions: int) -> Any:
        count = replicas * partitions
        devices = jax.devices("cpu")[:count]
        module = _hlo.hlo_module_from_text(manual(text) if partitions > 1 else text)
        computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
        options = _jax.CompileOptions()
        build = options.executable_build_options
        assignment = _jax.DeviceAssignment.create(np.arange(count).reshape(replicas, partitions))
        for target in (options, build):
            target.num_replicas, target.num_partitions = replicas, partitions
            target.device_assignment = assignment
        build.use_spmd_partitioning = partitions > 1
        client = devices[0].client
        executable = client.compile_and_load(mlir, _jax.DeviceList(tuple(devices)), options)
        mesh = jax.sharding.Mesh(np.array(devices), ("d",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
        given = []
        for number in range(len(inputs[0])):
            parts = [jax.device_put(inputs[d][number], devices[d]) for d in range(count)]
            shape = (parts[0].shape[0] * count, *parts[0].shape[1:])
            given.append(jax.make_array_from_single_device_arrays(shape, sharding, parts))
        results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
        return [[np.asarray(part[d]) for part in results] for d in range(count)]

    answers = []
    for case in pickle.load(sys.stdin.buffer):
        try:
            answers.append(run(*case))
        except Exception as problem:  # noqa: BLE001  # whatever XLA raises is the answer
            answers.append(str(problem)[:500])
    sys.stdout.buffer.write(pickle.dumps(answers))


if __name__ == "__main__":
    _main()
