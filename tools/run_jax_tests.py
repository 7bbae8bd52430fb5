"""Runs JAX's own tests on this compiler as a platform of JAX, beside XLA:CPU.

    git clone --branch jax-v0.10.2 --depth 1 https://github.com/jax-ml/jax
    python tools/run_jax_tests.py jax lax_test.py api_test.py
    python tools/run_jax_tests.py jax --most 60 --table

Of each file all tests run here, or `--most N` that the seed chooses. Those that do not pass run on XLA:CPU, too: what
passes there is a loss. A loss in the file of expected failures, a test and its cause in each line, is counted apart.
`--both` runs everything on both. Needs the `oracle` extra, absl-py, portpicker and cloudpickle.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FILES = (
    *("lax_test", "lax_numpy_test", "lax_control_flow_test", "lax_autodiff_test", "lax_vmap_test"),
    *("api_test", "nn_test", "random_test", "random_lax_test", "linalg_test", "fft_test"),
    *("shard_map_test", "pmap_test", "python_callback_test", "export_test", "memories_test"),
    *("array_test", "dtypes_test", "pjit_test", "jax_jit_test", "lax_vmap_op_test"),
    *("lax_numpy_einsum_test", "lax_numpy_indexing_test", "lax_numpy_operators_test"),
    *("lax_numpy_reducers_test", "lax_numpy_ufuncs_test", "lax_numpy_vectorize_test"),
    *("lax_numpy_setops_test", "lax_scipy_test", "lax_scipy_sparse_test"),
    *("lax_scipy_special_functions_test", "lax_scipy_spectral_dac_test", "image_test"),
    *("ode_test", "sparse_test", "sparse_bcoo_bcsr_test", "sparsify_test"),
    *("debugging_primitives_test", "scipy_stats_test"),
)
"""The files that are compared; those that a checkout lacks are left out."""

EXPECTED = Path(__file__).with_name("jax_tests_expected.txt")
TEST_S = 300
"""Seconds of one test, after which its process ends."""


@dataclass
class Outcome:
    """What happened to tests on one platform."""

    results: dict[str, str] = field(default_factory=dict)
    """By test: passed, failed or skipped."""
    messages: dict[str, str] = field(default_factory=dict)

    def named(self, result: str) -> set[str]:
        """Tests with this result."""
        return {name for name, found in self.results.items() if found == result}


@dataclass
class Row:
    """A file's line of the table."""

    name: str
    passed: int
    """Tests that pass here."""
    skipped: int
    lost: Mapping[str, str]
    """Tests that pass on XLA:CPU alone, with what they say."""
    expected: int = 0
    """How many of these are expected."""
    seconds: float = 0.0
    """Of the run here."""

    @property
    def share(self) -> float:
        """Of what passes there, what passes here."""
        return self.passed / (self.passed + len(self.lost)) if self.passed else 0.0

    def line(self) -> str:
        """As Markdown."""
        lost = f"{len(self.lost)} ({self.expected} expected)" if self.lost else "0"
        return f"| `{self.name}` | {self.passed} | {lost} | {self.share:.2%} | {self.seconds:.0f} |"


def main() -> int:
    """The process's exit code: 1 where a test fails that is not expected to."""
    arguments = _parser().parse_intermixed_args()
    checkout = Path(arguments.checkout)
    names = [name.removesuffix(".py") for name in arguments.files] or FILES
    files = [n for n in names if (checkout / "tests" / f"{n}.py").exists()]
    lines = Path(arguments.expected).read_text().splitlines()
    expected = {line.split("#")[0].strip() for line in lines} - {""}
    rows: list[Row] = []
    for name in files:
        row = _compare(checkout, name, arguments)
        row.expected = sum(test in expected for test in row.lost)
        rows.append(row)
        print(row.line(), flush=True)
        for test, message in row.lost.items():
            if test not in expected:
                print(f"    {test}: {message[:160]}", flush=True)
    total = Row(
        "all",
        sum(row.passed for row in rows),
        sum(row.skipped for row in rows),
        {test: "" for row in rows for test in row.lost},
        sum(row.expected for row in rows),
        sum(row.seconds for row in rows),
    )
    print(total.line())
    return 1 if len(total.lost) > total.expected else 0


def _compare(checkout: Path, name: str, arguments: argparse.Namespace) -> Row:
    tests = _sampled(checkout, name, arguments)
    start = time.monotonic()
    here = _run(checkout, "mlirhlo", arguments, tests)
    seconds = time.monotonic() - start
    unsure = tests if arguments.both else [t for t in tests if here.results.get(_id(t)) == "failed"]
    missing = [t for t in tests if _id(t) not in here.results]
    cpu = _run(checkout, "cpu", arguments, [*dict.fromkeys([*unsure, *missing])])
    lost = cpu.named("passed") - here.named("passed")
    told = {test: here.messages.get(test, "did not end") for test in sorted(lost)}
    passed, skipped = here.named("passed"), here.named("skipped")
    return Row(name, len(passed), len(skipped), told, seconds=seconds)


def _id(node: str) -> str:
    """A test by class and name, without its file."""
    return ".".join(node.split("::")[1:])


def _sampled(checkout: Path, name: str, arguments: argparse.Namespace) -> list[str]:
    """The tests of a file to run."""
    listed = subprocess.run(
        [*_pytest(f"tests/{name}.py"), "--collect-only"],
        cwd=checkout,
        env=_environment("cpu", arguments),
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = [line for line in listed.splitlines() if "::" in line and " " not in line]
    found = [line for line in found if arguments.only in line]
    if not arguments.most or len(found) <= arguments.most:
        return found
    chosen = set(random.Random(f"{arguments.seed} {name}").sample(found, arguments.most))
    return [test for test in found if test in chosen]


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
    checkout: Path, platform: str, arguments: argparse.Namespace, tests: Sequence[str]
) -> Outcome:
    """Runs tests in workers, so that a crash, or a test without an end, ends one test and not all."""
    if not tests:
        return Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report, listed = Path(folder) / "report.xml", Path(folder) / "tests.txt"
        listed.write_text("\n".join(tests))
        limits = (f"faulthandler_timeout={TEST_S}", "faulthandler_exit_on_timeout=true")
        command = _pytest(f"--junitxml={report}", "-n", str(arguments.workers), "--tb=line")
        command += [word for limit in limits for word in ("-o", limit)]
        try:
            subprocess.run(
                [*command, f"@{listed}"],
                cwd=checkout,
                env=_environment(platform, arguments),
                capture_output=True,
                timeout=arguments.limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"{tests[0].split('::')[0]}: stopped after {arguments.limit} s on {platform}")
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
    parser.add_argument("--cases", type=int, default=1, help="generated cases a test (default 1)")
    parser.add_argument("--most", type=int, default=0, help="tests of a file (default all)")
    parser.add_argument("--seed", type=int, default=0, help="chooses the tests of --most")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    parser.add_argument("--both", action="store_true", help="run everything on XLA:CPU, too")
    parser.add_argument("--expected", default=EXPECTED, help="file of expected failures")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds a file and platform")
    return parser


if __name__ == "__main__":
    sys.exit(main())
