#!/usr/bin/env python3
"""Runs a checkout of data-apis/array-api-tests against `mlirhlo.numpy`, and counts by module.

The checkout is not part of this repository: `git clone --recursive
https://github.com/data-apis/array-api-tests`. Its stubs are a submodule. Needs pytest, hypothesis and
pytest-json-report, as the suite itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent

XFAILS: Mapping[str, str] = {
    "array_api_tests/test_special_cases.py::test_unary[sqrt(real(x_i) is +infinity and "
    "isfinite(imag(x_i)) and imag(x_i) > 0) -> +0 + infinity j]": (
        "the standard's text swaps the cases of +infinity and -infinity; C99, annex G.6.4.2, has "
        "+infinity + 0j, as XLA and numpy"
    ),
}
"""Tests that must fail, with the reason; one that passes is an error."""

SKIPS: Mapping[str, str] = {}
"""Tests that are not run, with the reason."""

UNKNOWN_SHAPE = "HLO0621: the shape of the result depends on values; HLO's shapes are static"

JIT_XFAILS: Mapping[str, str] = {
    f"array_api_tests/{test}": UNKNOWN_SHAPE
    for test in (
        "test_searching_functions.py::test_nonzero",
        "test_set_functions.py::test_unique_all",
        "test_set_functions.py::test_unique_counts",
        "test_set_functions.py::test_unique_inverse",
        "test_set_functions.py::test_unique_values",
    )
}
"""The like, inside of `jit` only."""

JIT_SKIPS: Mapping[str, str] = {
    "array_api_tests/test_manipulation_functions.py::test_repeat": (
        UNKNOWN_SHAPE + ", where `repeats` is an array; some of its cases have a number"
    ),
}
"""The like of `SKIPS`, inside of `jit` only."""


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of the suite, with its submodule")
    parser.add_argument("--version", default="2024.12", help="version of the standard")
    parser.add_argument("--max-examples", type=int, default=100, help="cases of each test")
    parser.add_argument(
        "--jit", action="store_true", help="call each function inside of jit, on traced arrays"
    )
    parser.add_argument("--only", default="", help="a part of the suite, as pytest's -k has it")
    parser.add_argument("modules", nargs="*", help="files of the suite; all by default")
    return parser.parse_intermixed_args(given)


def listed(directory: Path, name: str, tests: Mapping[str, str]) -> str:
    """A file that lists tests with their reasons, in the suite's form."""
    path = directory / name
    path.write_text("".join(f"# {why}\n{test}\n" for test, why in tests.items()), encoding="utf-8")
    return str(path)


def counts(report: Path) -> dict[str, Counter[str]]:
    """How many tests of each module passed, failed, were skipped or failed as expected."""
    found: dict[str, Counter[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        module = case.get("classname", "").split(".Test")[0].rpartition(".")[2]
        outcome = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = "failed"
            elif child.tag == "skipped":
                outcome = "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
        found.setdefault(module, Counter())[outcome] += 1
    return found


def main(given: Sequence[str]) -> int:
    """Runs the suite; returns pytest's exit code."""
    options = arguments(given)
    checkout: Path = options.checkout.resolve()
    if not (checkout / "array_api_tests").is_dir():
        print(f"{checkout}: no checkout of array-api-tests", file=sys.stderr)
        return 2
    xfails = {**XFAILS, **(JIT_XFAILS if options.jit else {})}
    skips = {**SKIPS, **(JIT_SKIPS if options.jit else {})}
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "array_api_under_jit" if options.jit else "mlirhlo.numpy",
        "ARRAY_API_TESTS_VERSION": options.version,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", f"--junit-xml={report}",
            f"--max-examples={options.max_examples}", "--disable-deadline",
            f"--xfails-file={listed(Path(folder), 'xfails.txt', xfails)}",
            f"--skips-file={listed(Path(folder), 'skips.txt', skips)}",
            *(["-k", options.only] if options.only else []),
            *(options.modules or ["array_api_tests"]),
        ]  # fmt: skip
        code = subprocess.run(command, cwd=checkout, env=environment, check=False).returncode
        if report.exists():
            print(f"\n{'module':48}{'passed':>8}{'failed':>8}{'xfailed':>8}{'skipped':>8}")
            for module, tally in sorted(counts(report).items()):
                numbers = (tally[k] for k in ("passed", "failed", "xfailed", "skipped"))
                print(f"{module:48}" + "".join(f"{number:8}" for number in numbers))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
