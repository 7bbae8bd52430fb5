"""HLO modules with accidents, and what every one of them must come to.

A mutant is a text with tokens exchanged for others of their kind, so that many are still read and verify.
Whatever happens to one is a coded diagnostic, or right: what is written reads as the same module in every
format, pipelines leave modules that verify, and the interpreter, the optimised module and machine code
compute the same.
"""

from __future__ import annotations

import itertools
import random
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.near import Bounds, compare
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.hlo_text import PrintOptions
from mlirhlo.importing import LATE
from mlirhlo.rewrites.cloning import clone_module

with LATE:
    from mlirhlo.interp import engine, fake_data, values
    from mlirhlo.rewrites import hlo_to_stablehlo, pipeline, pipelines
    from mlirhlo.runtime import compiler


TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|->|<=|\.\.\.|%?[A-Za-z_][\w.-]*=?|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\s+|.',
    re.DOTALL,
)
TYPES = [
    "pred",
    "s4",
    "u4",
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "c64",
    "c128",
    "f8e4m3fn",
    "f8e5m2",
]
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "17",
    "-1",
    "2147483648",
    "9223372036854775807",
)
FORMATS = ("hlo", "mlir", "mlir-generic", "stablehlo", "mlirbc", "artifact", "pb", "pbtxt", "json")
OF_STABLEHLO = ("stablehlo", "mlirbc", "artifact")
"""Those that hold StableHLO."""
STAGES = ("formats", "pipelines", "values")
MAX_ELEMENTS = 1 << 16
"""Modules that hold larger arrays are not run."""
MAX_STEPS = 20_000
"""Instructions that a module may run: a damaged loop may have any number of rounds."""
OUR_FAULTS = {"HLO0433", "HLO0434", "HLO0441", "HLO0512", "HLO0901"}
"""Codes that say that this project is at fault."""

_OPCODE = re.compile(r"[a-z][a-z-]*")
_KINDS: Sequence[tuple[Callable[[str], Any], Sequence[str]]] = (
    (set(TYPES).__contains__, TYPES),
    (re.compile(r"-?\d+").fullmatch, NUMBERS),
    (OPCODES.__contains__, sorted(OPCODES)),
)


def mutant(choose: random.Random, text: str) -> str:
    """`text` with one to three tokens exchanged, moved, doubled or lost."""
    tokens = TOKEN.findall(text)
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        at = choose.randrange(len(tokens))
        token = tokens[at]
        match choose.randrange(10):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, token)
            case 2 | 3:  # another of the text's own
                same = [t for t in tokens if _kind(t) == _kind(token)]
                tokens[at] = choose.choice(same)
            case 4:  # everywhere
                other = _other(choose, token)
                tokens = [other if t == token else t for t in tokens]
            case 5:
                tokens = _lines_moved(choose, tokens)
            case _:
                tokens[at] = _other(choose, token)
        if not tokens:
            return ""
    return "".join(tokens)


def _kind(token: str) -> int:
    for number, (holds, _) in enumerate(_KINDS):
        if holds(token):
            return number
    return -1 if token.startswith("%") else -2 if token[-1:] == "=" else -3


def _other(choose: random.Random, token: str) -> str:
    if token.lstrip("-").isdigit() and choose.random() < 0.5:
        return str(int(token) + choose.choice((-1, 1)))
    kind = _kind(token)
    return choose.choice(_KINDS[kind][1]) if kind >= 0 else token


def _lines_moved(choose: random.Random, tokens: list[str]) -> list[str]:
    lines = "".join(tokens).split("\n")
    at, other = choose.randrange(len(lines)), choose.randrange(len(lines))
    if choose.random() < 0.5:
        lines[at] = lines[other]
    else:
        lines[at], lines[other] = lines[other], lines[at]
    return TOKEN.findall("\n".join(lines)) or [" "]


def judge(text: str, stages: Sequence[str] = STAGES) -> str:
    """What becomes of a text: a code, `verified`, or, with a blank in it, a finding.

    A finding is one line that names its cause, and then the details.
    """
    step = ["read"]
    try:
        return _judge(text, stages, step)
    except HloError as problem:
        if step[0] in ("read", "verify") or problem.code not in OUR_FAULTS:
            return problem.code
        return f"{step[0]}: {problem.code}\n{problem}"
    except RecursionError:
        return f"{step[0]}: RecursionError {_where()}"
    except MemoryError:
        return "memory"
    except Exception as problem:  # noqa: BLE001  # the point of it
        return f"{step[0]}: {type(problem).__name__} {_where()}\n{traceback.format_exc()}"


def _where() -> str:
    import sys

    last = traceback.extract_tb(sys.exc_info()[2])
    ours = [f for f in last if "/mlirhlo/" in f.filename] or list(last)
    return f"at {ours[-1].filename.rpartition('/mlirhlo/')[2]}:{ours[-1].name}"


def _judge(text: str, stages: Sequence[str], step: list[str]) -> str:
    module = load(text.encode("utf-8", "surrogateescape"), name="mutant.hlo").module
    step[0] = "verify"
    problems = verify_module(module)
    if problems:
        return problems[0].code
    if "formats" in stages and (finding := _written(module, step)):
        return finding
    if "pipelines" in stages:
        for platform in ("cpu", "gpu", "tpu"):
            step[0] = f"pipeline {platform}"
            if finding := _optimised(clone_module(module), platform):
                return finding
    if "values" in stages:
        return _computed(module, step) or "equal"
    return "verified"


def _written(module: ModuleOp, step: list[str]) -> str | None:
    for name in (n for n in FORMATS if n not in OF_STABLEHLO):
        step[0] = f"write {name}"
        if finding := written_finding(module, name, step):
            return finding

    step[0] = "convert"
    try:
        converted = hlo_to_stablehlo.convert_to_stablehlo(clone_module(module))
    except HloError as problem:
        return f"convert: {problem.code}\n{problem}" if problem.code in OUR_FAULTS else None
    for name in OF_STABLEHLO:
        step[0] = f"write {name}"
        if finding := written_finding(converted, name, step):
            return finding
    return None


def written_finding(module: Any, name: str, step: list[str] | None = None) -> str | None:
    """What goes wrong where a module is written in a format, read and written again; `step` is told of it."""
    step = step if step is not None else [""]
    options = PrintOptions(large_constants=True)
    try:
        once = to_bytes(module, name, options=options)
    except HloError as problem:
        # Messages do not hold everything that text does, and say so.
        return (
            None
            if problem.code in ("HLO0207", "HLO0502")
            else f"write {name}: {problem.code}\n{problem}"
        )
    step[0] = f"read {name}"
    try:
        again = load(once, name=f"mutant.{name}").module
    except HloError as problem:
        return f"{name} is not read back: {problem.code} {_cause(problem)}\n{problem}"
    if holds_hlo(again) and (problems := verify_module(again)):
        return f"{name} read back does not verify: {problems[0].code}\n{problems[0]}"
    twice = to_bytes(again, name, options=options)
    if twice != once:
        return f"{name} differs when written again\n{_difference(once, twice)}"
    return None


def holds_hlo(module: Any) -> bool:
    """Whether a module is HLO."""
    return not any(op.name == "func.func" for op in module.ops)


def _cause(problem: HloError) -> str:
    return re.sub(r"\d+|'[^']*'|%\S+", "#", problem.diagnostics[0].message)[:60]


def _difference(one: bytes, other: bytes) -> str:
    pairs = zip(one.split(b"\n"), other.split(b"\n"), strict=False)
    for first, second in pairs:
        if first != second:
            return f"{first[:300]!r}\n{second[:300]!r}"
    return f"{len(one)} and {len(other)} bytes"


def _optimised(module: ModuleOp, platform: str) -> str | None:
    try:
        pipeline.run_pipeline(module, pipelines.pipelines_of(platform))
    except HloError as problem:
        return (
            f"pipeline {platform}: {problem.code}\n{problem}"
            if problem.code in OUR_FAULTS
            else None
        )
    if problems := verify_module(module):
        return f"pipeline {platform} leaves {problems[0].code} {_constraint(problems[0].message)}\n{problems[0]}"
    text = to_bytes(module, "hlo", options=PrintOptions(large_constants=True))
    try:
        again = load(text, name="optimised.hlo").module
    except HloError as problem:
        return f"text after pipeline {platform} is not read back: {problem.code}\n{problem}"
    if to_bytes(again, "hlo", options=PrintOptions(large_constants=True)) != text:
        return f"text after pipeline {platform} differs when printed again"
    return None


def _constraint(message: str) -> str:
    return message[message.rfind("[") :] if message.endswith("]") else ""


def _may_run(module: HloModule) -> bool:
    total = 0
    for op in module.instructions:
        if op.opcode.varies or op.opcode.collective:
            return False
        if isinstance(op, CustomCallOp) and op.custom_call_target == "tpu_custom_call":
            return False  # made-up indices lead out of arrays
        for _, leaf in leaves(op.shape):
            total = max(total, leaf.element_count) if isinstance(leaf, ArrayShape) else total
    return total <= MAX_ELEMENTS and module.num_partitions * module.replica_count == 1


class _TooLong(Exception):
    """The module runs more instructions than one that is compared."""


def _bounded() -> engine.Hook:
    """Ends a run after `MAX_STEPS` instructions."""
    left = itertools.count(MAX_STEPS, -1)

    def hook(*_: object) -> None:
        if next(left) < 0:
            raise _TooLong

    return hook


def _computed(module: ModuleOp, step: list[str]) -> str | None:
    """Runs a module on the interpreter, after the pipeline of the CPU, and as machine code."""
    if not _may_run(HloModule(module)):
        return "verified"
    step[0] = "interpreter"
    arguments = fake_data.make_fake_arguments(module)
    with np.errstate(all="ignore"):
        try:
            want = engine.Interpreter(module, hook=_bounded()).run(arguments)
        except _TooLong:
            return "verified"
        optimised = clone_module(module)
        step[0] = "interpreter after pipeline cpu"
        try:
            pipeline.run_pipeline(optimised, pipelines.pipelines_of("cpu"))
            if finding := _differs(want, engine.Interpreter(optimised).run(arguments)):
                return f"values after pipeline cpu {finding}"
        except HloError as problem:
            return f"after pipeline cpu: {problem.code}\n{problem}"
        step[0] = "compile cpu"
        try:
            executable = compiler.compile_module(clone_module(module), cached=False)
        except HloError as problem:
            return (
                problem.code
                if problem.code not in OUR_FAULTS
                else f"compile: {problem.code}\n{problem}"
            )
        step[0] = "run cpu"
        if finding := _differs(want, executable(*arguments)):
            nearby = engine.Interpreter(module).run([_nudged(a) for a in arguments])
            return "unstable" if _differs(want, nearby) else f"values on cpu {finding}"
    return None


def _nudged(value: Any) -> Any:
    """Arguments a rounding or two away: programs that give another result for them say nothing of roundings."""
    if isinstance(value, tuple):
        return tuple(map(_nudged, cast("tuple[Any, ...]", value)))
    array = cast("np.ndarray[Any, Any]", value)
    if isinstance(value, np.ndarray) and np.issubdtype(array.dtype, np.inexact):
        return (array * (1 + 4 * np.finfo(array.dtype).eps)).astype(array.dtype)
    return cast(Any, value)


def _differs(want: Any, got: Any) -> str | None:
    for mismatch in compare(values.for_user(want), values.for_user(got), Bounds(1e-2, 2e-2)):
        return f"differ\n{mismatch}"
    return None


def mutants(seed: int, texts: Sequence[str], numbers: Iterator[int]) -> Iterator[tuple[int, str]]:
    """Mutants by number: each follows from the seed and its number."""
    for number in numbers:
        choose = random.Random(f"{seed}:{number}")
        yield number, mutant(choose, choose.choice(texts))
