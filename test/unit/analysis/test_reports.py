"""Analyses as reports: of any module, of one form, every name one of the module's text."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from support import CORPUS, needs_shared
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.dataflow import (
    HANDING_ON,
    WRITING_IN_PLACE,
    callers_of,
    in_place_pairs,
    indices,
    sources_of,
)
from mlirhlo.analysis.reports import REPORTS, as_text
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

HEAD = "HloModule m\n\n"
STATE = "(s32[], f32[2])"
ODD = {
    "nothing": "ENTRY e {\n  ROOT t = () tuple()\n}",
    "a parameter": "ENTRY e {\n  ROOT p = f32[3] parameter(0)\n}",
    "tuples in tuples": """ENTRY e {
  p = (f32[2], (s32[], token[]), ()) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = (s32[], token[]) get-tuple-element(p), index=1
  ROOT t = ((s32[], token[]), f32[2]) tuple(b, a)
}""",
    "no elements": """ENTRY e {
  p = f32[0,3] parameter(0)
  d = f32[0,0] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[0,3], f32[0,0]) tuple(p, d)
}""",
    "dynamic": """ENTRY e {
  p = f32[<=5,3] parameter(0)
  s = s32[] get-dimension-size(p), dimensions={0}
  ROOT q = f32[<=5,3] set-dimension-size(p, s), dimensions={0}
}""",
    "unbounded": "ENTRY e {\n  p = f32[?,3] parameter(0)\n  ROOT n = f32[?,3] negate(p)\n}",
    "asynchronous": """work {
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x)
}

ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(p), calls=work
  u = ((f32[4]), f32[4], s32[]) async-update(s)
  d = f32[4] async-done(u)
  c = (f32[4], f32[4], u32[]) copy-start(d)
  ROOT r = f32[4] copy-done(c)
}""",
    "hosts": """ENTRY e {
  p = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(p, t), channel_id=1
  sent = token[] send-done(s), channel_id=1
  r = (f32[4], u32[], token[]) recv(sent), channel_id=2
  d = (f32[4], token[]) recv-done(r), channel_id=2
  i = ((f32[2], pred[]), token[]) infeed(t)
  o = token[] outfeed(p, t), outfeed_shape=f32[4]
  ROOT g = f32[4] get-tuple-element(d), index=0
}""",
    "loops in branches in loops": f"""never {{
  a = {STATE} parameter(0)
  ROOT b = pred[] constant(false)
}}

same {{
  ROOT a = {STATE} parameter(0)
}}

one {{
  a = {STATE} parameter(0)
  ROOT b = {STATE} while(a), condition=never, body=same
}}

other {{
  ROOT a = {STATE} parameter(0)
}}

body {{
  a = {STATE} parameter(0)
  p = pred[] constant(true)
  ROOT b = {STATE} conditional(p, a, a), true_computation=one, false_computation=other
}}

condition {{
  a = {STATE} parameter(0)
  ROOT b = pred[] constant(true)
}}

ENTRY e {{
  a = {STATE} parameter(0)
  ROOT b = {STATE} while(a), condition=condition, body=body
}}""",
    "shared": """f {
  x = f32[2] parameter(0)
  ROOT y = f32[2] negate(x)
}

unused {
  ROOT x = f32[2] parameter(0)
}

ENTRY e {
  p = f32[2] parameter(0)
  a = f32[2] call(p), to_apply=f
  i = s32[] constant(2)
  ROOT c = f32[2] conditional(i, a, a, p), branch_computations={f, f, f}
}""",
    "opaque": """ENTRY e {
  p = f32[8] parameter(0)
  o = opaque[] custom-call(p), custom_call_target="x"
  b = b(f32[8]) custom-call(p), custom_call_target="Pin"
  ROOT n = f32[8] custom-call(o), custom_call_target="y"
}""",
    "in order": """ENTRY e {
  p = f32[8] parameter(0)
  d = f32[8] opt-barrier(p)
  t = token[] after-all()
  a = f32[8] add-dependency(d, t)
  n = f32[8] negate(a), control-predecessors={d}
  ROOT r = (f32[8], token[]) tuple(n, t)
}""",
    "sharded": """ENTRY e {
  p = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT n = f32[8] negate(p), sharding={devices=[4]<=[4]}
}""",
    "left out": "ENTRY e {\n  c = f32[100] constant({...})\n  ROOT n = f32[100] negate(c)\n}",
}
NUMBERS = {str: float}
FORMS: dict[str, Any] = {
    "alias": {str: [str]},
    "buffer-assignment": {str: ({"size": int, "kind": str, "values": [str]}, int)},
    "call-graph": {str: {"context": str, "callers": [str], "callees": [str]}},
    "cost": {
        "total": NUMBERS,
        "total with known trip counts": NUMBERS,
        "instructions": {str: NUMBERS},
    },
    "dataflow": {str: {"positions": [str], "uses": [str]}},
    "liveness": {str: {"instructions": int, "dead": [str]}},
    "schedules": {str: {str: int}},
}
"""What docs/analyses.md says of each: `{str: x}` has any keys, `(x, y)` is one of them."""


def has_form(value: Any, form: Any) -> bool:
    match form:
        case tuple():
            return any(has_form(value, one) for one in form)
        case [one]:
            return isinstance(value, list) and all(has_form(part, one) for part in value)
        case dict() if str in form:
            return isinstance(value, dict) and all(has_form(v, form[str]) for v in value.values())
        case dict():
            return (
                isinstance(value, dict)
                and value.keys() == form.keys()
                and all(has_form(value[key], form[key]) for key in form)
            )
        case _:
            return isinstance(value, (int, float) if form is float else form)


def check(module: ModuleOp) -> None:
    """All reports of a module: their form, and that they name what its text names."""
    printed = parse_module(print_module(module))
    names = {op.instruction_name for op in HloModule(printed).instructions}
    for name, report in REPORTS.items():
        found = report(module)
        assert as_text(found)
        assert has_form(json.loads(json.dumps(found)), FORMS[name]), name
        if name == "dataflow":
            assert {value.split("{")[0] for value in found} <= names
            assert len(found) >= sum(op.opcode.name == "parameter" for op in entry(module))


def check_classes(module: HloModule) -> None:
    """What hands on or writes in place is found by its class, without looking at all the others."""
    computations = module.by_name()
    ops = list(module.instructions)
    callers = callers_of(ops, computations)
    for op in ops:
        if any(sources_of(op, index, computations, callers) for index in indices(op.shape)):
            assert type(op) in HANDING_ON
        if in_place_pairs(op, computations):
            assert type(op) in WRITING_IN_PLACE


def entry(module: ModuleOp) -> list[Any]:
    return list(HloModule(module).entry.instructions)


def test_every_report_has_a_form() -> None:
    assert FORMS.keys() == REPORTS.keys()
    assert not has_form({"x": {"positions": [], "uses": [1]}}, FORMS["dataflow"])


@pytest.mark.parametrize("name", ODD)
def test_odd_modules(name: str) -> None:
    module = parse_module(HEAD + ODD[name])
    check(module)
    check_classes(HloModule(module))


def test_instructions_that_passes_made() -> None:
    """They have no name, or one that another one has, until they are printed."""
    module = parse_module(HEAD + ODD["in order"])
    for op in entry(module)[2:]:
        op.instruction_name = None if op.opcode.name == "after-all" else "p"
    check(module)
    assert "p.2" in REPORTS["dataflow"](module)


def modules() -> Iterator[str]:
    """Programs as they were, and as XLA's passes left them at some stages."""
    for path in sorted(CORPUS.glob("programs/*/*.hlo"))[::9]:
        if path.stat().st_size < 40_000:
            yield path.read_text()
    for path in sorted(CORPUS.glob("programs/*/*.passes.tar.gz"))[::40]:
        with tarfile.open(path) as archive:
            files = [m for m in archive if m.isfile() and m.size < 40_000]
            for member in files[::20]:
                opened = archive.extractfile(member)
                text = b"" if opened is None else opened.read()
                if text.startswith(b"HloModule"):
                    yield text.decode()


@needs_shared
@pytest.mark.slow
def test_modules_of_xla() -> None:
    checked = 0
    for text in modules():
        try:
            module = parse_module(text)
        except HloError:
            continue
        check(module)
        run_pipeline(module, parse_pipeline("fusion,copy-insertion"))
        check(module)
        check_classes(HloModule(module))
        checked += 1
    assert checked > 15
