"""Runs JAX's own tests on this compiler as a platform of JAX, beside XLA:CPU.

    git clone --branch jax-v0.10.2 --depth 1 https://github.com/jax-ml/jax
    python tools/run_jax_tests.py jax lax_test.py api_test.py --cases 3
    python tools/run_jax_tests.py jax --all --expected tools/jax_tests_expected.txt

For each file it prints how many tests pass on XLA:CPU, how many of these pass here, and which do not; a test whose name
is in the file of expected failures is counted apart. `--fraction F` takes a share of each file's tests, by the seed.
Needs the `oracle` extra and absl-py.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

FILES = (
    "lax_test",
    "lax_numpy_test",
    "lax_numpy_einsum_test",
    "lax_numpy_indexing_test",
    "lax_numpy_operators_test",
    "lax_numpy_reducers_test",
    "lax_numpy_ufuncs_test",
    "lax_numpy_vectorize_test",
    "lax_control_flow_test",
    "lax_autodiff_test",
    "lax_vmap_test",
    "lax_vmap_op_test",
    "lax_scipy_test",
    "lax_scipy_sparse_test",
    "lax_scipy_special_functions_test",
    "lax_scipy_spectral_dac_test",
    "nn_test",
    "random_test",
    "random_lax_test",
    "linalg_test",
    "fft_test",
    "api_test",
    "jit_test",
    "pjit_test",
    "shard_map_test",
    "pmap_test",
    "dtypes_test",
    "image_test",
    "ode_test",
    "sparse_test",
    "debugging_primitives_test",
    "python_callback_test",
    "export_test",
    "memories_test",
    "array_test",
    "scipy_stats_test",
)
"""The files that are compared; those that a checkout lacks are left out."""


@dataclass
class Outcome:
    """What happened to the tests of a file on one platform."""

    results: dict[str, str] = field(default_factory=dict)
    """By test: passed, failed or skipped."""
    messages: dict[str, str] = field(default_factory=dict)

    def named(self, result: str) -> set[str]:
        """Tests with this result."""
        return {name for name, found in self.results.items() if found == result}


def main() -> int:
    """The process's exit code: 1 where a test fails that is not expected to."""
    arguments = _parser().parse_args()
    checkout = Path(arguments.checkout)
    names = arguments.files or [f"{name}.py" for name in FILES]
    files = [n for n in names if (checkout / "tests" / n).exists()]
    expected = set()
    if arguments.expected:
        lines = Path(arguments.expected).read_text().splitlines()
        expected = {line.split("#")[0].strip() for line in lines} - {""}
    total: Counter[str] = Counter()
    for name in files:
        total += _compare(checkout, name, arguments, expected)
    share = total["here"] / total["cpu"] if total["cpu"] else 1.0
    print(
        f"all: {total['cpu']} pass on XLA:CPU, {total['here']} of these here ({share:.2%}); "
        f"{total['expected']} expected failures, {total['unexpected']} others"
    )
    return 1 if total["unexpected"] else 0


def _compare(
    checkout: Path, name: str, arguments: argparse.Namespace, expected: set[str]
) -> Counter[str]:
    tests = _sampled(checkout, name, arguments)
    here = _run(checkout, name, "mlirhlo", arguments, tests)
    cpu = _run(checkout, name, "cpu", arguments, tests)
    passed = cpu.named("passed")
    lost = sorted(passed - here.named("passed"))
    unexpected = [test for test in lost if test not in expected]
    print(
        f"{name}: {len(passed)} pass on XLA:CPU, {len(passed) - len(lost)} of these here",
        flush=True,
    )
    for test in unexpected:
        print(
            f"  {test}: {here.messages.get(test, here.results.get(test, 'did not end'))[:160]}",
            flush=True,
        )
    return Counter(
        cpu=len(passed),
        here=len(passed) - len(lost),
        expected=len(lost) - len(unexpected),
        unexpected=len(unexpected),
    )


def _sampled(checkout: Path, name: str, arguments: argparse.Namespace) -> list[str]:
    """Tests of a file to run; none for all."""
    if not arguments.fraction:
        return []
    listed = subprocess.run(
        [*_pytest(f"tests/{name}"), "--collect-only"],
        cwd=checkout,
        env=_environment("cpu", arguments),
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = [line for line in listed.splitlines() if "::" in line]
    count = max(1, round(len(found) * arguments.fraction))
    return random.Random(f"{arguments.seed} {name}").sample(found, min(count, len(found)))


def _pytest(*more: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more]


def _environment(platform: str, arguments: argparse.Namespace) -> dict[str, str]:
    return {
        **os.environ,
        "JAX_PLATFORMS": platform,
        "JAX_NUM_GENERATED_CASES": str(arguments.cases),
        "JAX_SKIP_SLOW_TESTS": "1",
    }


def _run(
    checkout: Path, name: str, platform: str, arguments: argparse.Namespace, tests: list[str]
) -> Outcome:
    """Runs a file in workers, so that a crash ends one test and not all."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = _pytest(f"--junitxml={report}", "-n", str(arguments.workers), "--tb=line")
        if arguments.only:
            command += ["-k", arguments.only]
        if tests:
            (Path(folder) / "tests.txt").write_text("\n".join(tests))
            command.append(f"@{folder}/tests.txt")
        else:
            command.append(f"tests/{name}")
        try:
            subprocess.run(
                command,
                cwd=checkout,
                env=_environment(platform, arguments),
                capture_output=True,
                timeout=arguments.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"{name}: stopped after {arguments.limit} s on {platform}")
        return _read(report) if report.exists() else Outcome()


def _read(report: Path) -> Outcome:
    outcome = Outcome()
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        result = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                result = "failed"
                outcome.messages[name] = " ".join((child.get("message") or "").split())
            elif child.tag == "skipped":
                result = "skipped"
        outcome.results[name] = result
    return outcome


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", help="folder of JAX's sources, at the installed version's tag")
    parser.add_argument(
        "files", nargs="*", help="files in its tests/; all that are compared when none"
    )
    parser.add_argument("--cases", type=int, default=3, help="generated cases a test (default 3)")
    parser.add_argument(
        "--fraction", type=float, default=0.0, help="run this share of each file's tests"
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses the tests of --fraction")
    parser.add_argument("--only", default="", help="an expression of pytest's -k")
    parser.add_argument("--expected", default="", help="file of expected failures")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds a file and platform")
    return parser


if __name__ == "__main__":
    sys.exit(main())
