"""Damaged HLO text for the reader: only modules and diagnostics may come out, in bounded time.

Cases are texts with tokens deleted, doubled, swapped, replaced and inserted, cut-off texts, hostile bytes, and deep
or long constructions. What is read must print, and the print must read as itself again.
"""

from __future__ import annotations

import gc
import random
import re
import time
import traceback
from collections.abc import Callable, Sequence

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module, print_module

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|->|<=|\.\.\.|%?[A-Za-z_][\w.-]*=?|-?\d+(?:\.\d+)?|\s+|.',
    re.DOTALL,
)

PIECES: tuple[str, ...] = (
    *"(){}[],:=%*#+~?<>-./\"'\\@$\t\r\n ",
    *("->", "<=", "...", "ROOT", "ENTRY", "HloModule", "f32", "f32[", "s4", "true", "inf", "-nan"),
    *("nan(0x7)", "0", "-1", "1e400", "9" * 20, "9" * 5000, "0.", "1x1", "0_0x1_1", "b0f_0io->b0f"),
    *(
        "/*",
        "*/",
        "//",
        "{...}",
        "{}",
        "()",
        "(((",
        "}}}",
        "%%",
        "%1",
        "__x",
        "to_apply=",
        "calls=",
    ),
    *(
        "sharding={",
        "metadata={",
        "FileNames",
        "?",
        "<=3",
        ":T(8,128)",
        "\\x",
        '"\\400"',
        "é",
        "\0",
    ),
    *("\ud800", "\u2028", "\ufeff", "٣", "control-predecessors={", "execution_thread="),
)
"""Text that is put into other text."""

SECONDS = 2.0
"""Most CPU time for a case, for each started 100 kB of text."""

DEPTH = 100_000


def mutate(choose: random.Random, text: str) -> str:
    """`text` with one to four accidents."""
    tokens = TOKEN.findall(text)
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        at = choose.randrange(len(tokens))
        other = choose.randrange(len(tokens))
        match choose.randrange(9):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = tokens[other]
            case 4:
                tokens.insert(at, choose.choice(PIECES))
            case 5:
                tokens[at] = choose.choice(PIECES)
            case 6:
                del tokens[at : at + choose.randrange(1, 30)]
            case 7:
                tokens[at:at] = tokens[other : other + choose.randrange(1, 30)]
            case _:
                tokens = tokens[: at + 1]
        if not tokens:
            return ""
    return "".join(tokens)


def truncate(choose: random.Random, text: str) -> str:
    """A prefix of `text`."""
    return text[: choose.randrange(len(text))]


def noise(choose: random.Random, text: str) -> str:
    """`text` with some characters replaced by any others."""
    characters = list(text)
    for _ in range(choose.randrange(1, 8)):
        characters[choose.randrange(len(characters))] = chr(choose.randrange(256))
    return "".join(characters)


def hostile(choose: random.Random, text: str) -> str:
    """Something deep, long or empty, alone or within a module."""
    depth = choose.choice((1, 100, 400, 1000, 5000))
    return choose.choice(HOSTILE)(depth)


def _module(line: str) -> str:
    return f"HloModule m\n\nENTRY e {{\n  a = f32[] parameter(0)\n  {line}\n}}\n"


HOSTILE: Sequence[Callable[[int], str]] = (
    lambda n: _module("r = " + "(" * n + "f32[]" + ")" * n + " tuple(a)"),
    lambda n: _module("r = f32[] " + "negate(" * n + "a" + ")" * n),
    lambda n: _module("r = f32[] constant(" + "{" * n + "1" + "}" * n + ")"),
    lambda n: _module("r = f32[] negate(a), sharding=" + "{" * n + "replicated" + "}" * n),
    lambda n: _module("r = f32[] negate(a), origin={" + "(" * n + '{"x"}' + ")" * n + "}"),
    lambda n: _module("r = f32[] negate(a), backend_config=" + "{" * n + "}" * n),
    lambda n: _module("r = f32[] call(a), to_apply=" * n + "{"),
    lambda n: _module("r = f32[] call(a), to_apply={ " * n + "p = f32[] parameter(0)" + " }" * n),
    lambda n: _module("r = f32[" + "1," * n + "1] broadcast(a), dimensions={}"),
    lambda n: _module("r = f32[" + "9" * n + "] broadcast(a), dimensions={}"),
    lambda n: _module("r = f32[2]{0:" + "T(8)" * n + "} broadcast(a), dimensions={}"),
    lambda n: _module("r = f32[2]{0:P(" * n + "f32[2]" + ")}" * n + " negate(a)"),
    lambda n: _module("r = f32[] negate(" + "/*" * n + "a)"),
    lambda n: _module("r = f32[] negate(" + "/**/" * n + "a)"),
    lambda n: _module("r = f32[] negate(a)" + ', metadata={op_name="' + "\\" * n + '"}'),
    lambda n: _module("r = f32[] add(" + "a, " * n + "a)"),
    lambda n: _module("r = (" + "f32[], " * n + "f32[]) tuple(" + "a, " * n + "a)"),
    lambda n: _module("r = f32[] negate(a), dimensions={" + "9" * n + "}"),
    lambda n: _module("r = f32[1] reverse(a), dimensions={" + "9," * n + "9}"),
    lambda n: _module("r = f32[1] pad(a, a), padding=" + "9" * n + "_0"),
    lambda n: _module("r = f32[1] reduce-window(a, a), window={size=" + "9" * n + "}, to_apply=e"),
    lambda n: _module("".join(f"r.{k} = f32[] negate(a) " for k in range(n))),
    lambda n: _module("".join(f"r.{'0' * (k % 50)}1 = f32[] negate(a) " for k in range(n // 10))),
    lambda n: "HloModule m" + ", x={" * n,
    lambda n: "HloModule m, entry_computation_layout={" + "(" * n + ")" * n + "}",
    lambda n: "HloModule " + "m" * n,
    lambda n: "HloModule m\n" + "ENTRY e {\n" * n,
    lambda n: "(" * n,
    lambda n: "{" * n,
    lambda n: "a = " * n,
    lambda n: "f32[] negate(" * n,
    lambda n: "\n" * n,
    lambda n: "/*" * n,
    lambda n: "//" * n,
    lambda n: '"' * n,
    lambda n: "%" * n,
    lambda n: "HloModule m\nFileNames\n" + '1 "a"\n' * n,
)

WAYS: Sequence[Callable[[random.Random, str], str]] = (
    *(mutate,) * 12,
    *(truncate,) * 2,
    *(noise,) * 3,
    hostile,
)


def make_case(seed: int, number: int, texts: Sequence[str]) -> str:
    """The text of case `number`."""
    choose = random.Random(f"{seed}:{number}")
    return choose.choice(WAYS)(choose, choose.choice(texts))


def judge(text: str, *, round_trip: bool = True) -> str:
    """`read`, the error code, or what went wrong (a text with a line break or a blank)."""
    gc.disable()  # freeing the modules of other cases is not reading
    started = time.process_time()
    module = None
    try:
        module = parse_module(text, "case.hlo")
    except HloError as error:
        outcome = error.code
        str(error)
    except Exception:  # noqa: BLE001  # the point of the tool
        return "traceback:\n" + traceback.format_exc()
    else:
        outcome = "read"
    finally:
        spent = time.process_time() - started
        gc.enable()
    if spent > SECONDS * (1 + len(text) // 100_000):
        return f"took {spent:.1f} s for {len(text)} characters"
    if module is not None and round_trip:
        try:
            printed = print_module(module)
            if print_module(parse_module(printed)) != printed:
                return "printed text does not read as itself"
        except Exception:  # noqa: BLE001
            return "round trip failed:\n" + traceback.format_exc()
    return outcome


def is_failure(outcome: str) -> bool:
    """Whether an outcome of `judge` is a defect."""
    return " " in outcome or "\n" in outcome
