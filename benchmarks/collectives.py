"""Collectives of two devices in one process, in turns with XLA:CPU: how long one takes in a loop of many.

    python benchmarks/collectives.py                 # needs the oracle extra for XLA's side
    python benchmarks/collectives.py --rounds 3
    mpirun -n 2 python benchmarks/collectives.py     # on two ranks, in turns with XLA's processes and Gloo

Small ones are measured in a loop, so that what starting a program costs is not part of it; a large one is a program.
Of each the best of `--rounds` is printed: another load on the machine takes its processors away from waiting devices.
`copies` are by time, in those of one `memcpy` of the bytes of a device, and by code: what it reads and writes, over
twice its bytes. The last lines are an asynchronous all-reduce beside other work, which takes as long as the work alone
where it is hidden.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirhlo.runtime.launcher import launched, own_rank, owners_of

DEVICES = 2
SIZES = ((8, "f32", 2000), (64 << 10, "f32", 500), (16 << 20, "f32", 1), (16 << 20, "bf16", 1))
"""Bytes of a device, element type, collectives in the loop; 1 is without one."""
BYTES = {"f32": 4, "bf16": 2}


def program(elements: int, element: str, count: int, *, inside: str) -> str:
    """A loop over `inside`, which makes `r` of `v`."""
    shape = f"{element}[{elements}]"
    head = f"""HloModule loop, num_partitions={DEVICES}
sum {{ a = {element}[] parameter(0)  b = {element}[] parameter(1)  ROOT s = {element}[] add(a, b) }}
"""
    if count == 1:
        lines = f"  v = {shape} parameter(0)\n  ROOT {inside.format(shape=shape)}"
        return f"{head}ENTRY e {{\n{lines}\n}}"
    return f"""{head}body {{
  s = (s32[], {shape}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = {shape} get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  {inside.format(shape=shape)}
  ROOT t = (s32[], {shape}) tuple(n, r)
}}
condition {{
  s = (s32[], {shape}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant({count})
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = {shape} parameter(0)
  z = s32[] constant(0)
  t = (s32[], {shape}) tuple(z, x)
  w = (s32[], {shape}) while(t), condition=condition, body=body
  ROOT r = {shape} get-tuple-element(w), index=1
}}"""


GROUPS = "to_apply=sum, channel_id=1, replica_groups={{{{0,1}}}}, use_global_device_ids=true"
ALL_REDUCE = f"r = {{shape}} all-reduce(v), {GROUPS}"


def ours(text: str, values: np.ndarray[Any, Any]) -> Callable[[], None]:
    """Runs a program on two devices of this project, or on this one of two ranks."""
    import mlirhlo
    from mlirhlo.interp.machine import Machine

    compiled = mlirhlo.compile(mlirhlo.parse(text), devices=DEVICES)
    if launched() == 1:
        return lambda: (compiled.on_devices([values]), None)[1]
    machine = Machine(1, DEVICES)
    return lambda: (compiled.executable.run_ranks(machine, [[values]], owners_of(DEVICES)), None)[1]


def xla(
    elements: int, element: str, count: int, values: np.ndarray[Any, Any]
) -> Callable[[], None]:
    """The same loop on XLA:CPU."""
    import jax
    from jax.sharding import Mesh, PartitionSpec

    del element, elements
    mesh = Mesh(np.array(jax.devices()[:DEVICES]), "d")
    spec = PartitionSpec("d")

    def loop(x: Any) -> Any:
        def body(_: Any, v: Any) -> Any:
            return jax.lax.pcast(jax.lax.psum(v, "d"), "d", to="varying")

        return jax.lax.fori_loop(0, count, body, x) if count > 1 else body(0, x)

    run = jax.jit(jax.shard_map(loop, mesh=mesh, in_specs=spec, out_specs=spec))
    whole = np.concatenate([values] * DEVICES)
    sharding = jax.NamedSharding(mesh, spec)
    x = jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
    return lambda: run(x).block_until_ready()


def say(line: str) -> None:
    """Prints, on the first of several ranks."""
    if not own_rank():
        print(line, flush=True)


def best(run: Callable[[], None], count: int) -> float:
    """Microseconds a round."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / count * 1e6


def copied(values: np.ndarray[Any, Any]) -> float:
    """Microseconds of a copy."""
    target = np.empty_like(values)
    return min(best(lambda: np.copyto(target, values), 1) for _ in range(5))


def by_code(text: str) -> float:
    """How many copies of its operand a device's part of an all-reduce is, by the bytes that it reads and writes."""
    import mlirhlo
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.lowering.cpu.collective_parts import folded_part, read_part, size_of
    from mlirhlo.lowering.cpu.collectives import operands_of

    instructions = HloModule(mlirhlo.parse(text).op).instructions
    op = next(op for op in instructions if op.opcode.name == "all-reduce")
    me, members = 0, range(DEVICES)
    parts = [read_part(op, 0, [0] * DEVICES, me, owner) for owner in members]
    folded = folded_part(op, 0, me, DEVICES)
    parts += [folded] * DEVICES
    moved = sum(part.end - part.start for part in parts if part is not None)
    return moved / (2 * size_of(operands_of(op)[0]))


def compare(size: int, element: str, count: int, rounds: int, *, peer: bool) -> None:
    """Prints a row."""
    import ml_dtypes

    elements = size // BYTES[element]
    # Written to: what was never written is one page of zeros, which every cache holds.
    values = np.full(elements, 0.5, np.float32 if element == "f32" else ml_dtypes.bfloat16)
    text = program(elements, element, count, inside=ALL_REDUCE)
    sides = {"ours": ours(text, values)}
    if peer:
        sides["xla"] = xla(elements, element, count, values)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(rounds):
        for name, run in sides.items():
            times[name].append(best(run, count))
    mine = min(times["ours"])
    row = f"{size:>9} {element:>5} {mine:11.1f}"
    if peer:
        theirs = min(times["xla"])
        row += f" {theirs:11.1f} {theirs / mine:7.2f}"
    if size > 1 << 20:
        row += f"   {mine / copied(values):.1f} copies, {by_code(text):.1f} by code"
    say(row)


WORK = "\n  ".join(
    [
        "d = f32[] constant(1.0001)",
        "db = {shape} broadcast(d), dimensions={{}}",
        "w0 = {shape} multiply(v, db)",
        *(f"w{k + 1} = {{shape}} tanh(w{k})" for k in range(8)),
    ]
)


def overlapped(rounds: int) -> None:
    """Prints how long work takes alone, with an all-reduce behind it, and beside an asynchronous one."""
    elements, count = 16 << 10, 200
    values = np.ones(elements, np.float32)
    forms = {
        "work alone": f"{WORK}\n  r = {{shape}} add(w8, v)",
        "all-reduce alone": ALL_REDUCE,
        "one after another": f"{ALL_REDUCE.replace('r =', 'q =')}\n  {WORK}\n  r = {{shape}} add(w8, q)",
        "beside each other": (
            f"b = {{shape}} all-reduce-start(v), {GROUPS}\n  {WORK}\n"
            "  q = {shape} all-reduce-done(b)\n  r = {shape} add(w8, q)"
        ),
    }
    for name, inside in forms.items():
        run = ours(program(elements, "f32", count, inside=inside), values)
        run()
        found = min(best(run, count) for _ in range(rounds))
        say(f"{name:>18}: {found:8.1f} µs")


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")
    arguments = parser.parse_args()
    if launched() == 1:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    try:
        import jax

        jax.config.update("jax_platforms", "cpu")
        if launched() > 1:
            jax.distributed.initialize(cluster_detection_method="mpi4py")
        peer = True
    except ImportError:
        peer = False
    say("    bytes  type   ours, µs" + ("     XLA, µs   ratio" if peer else ""))
    for size, element, count in SIZES:
        compare(size, element, count, arguments.rounds, peer=peer)
    overlapped(arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
