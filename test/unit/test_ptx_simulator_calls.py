"""Calls in PTX: functions that call themselves, and functions without code."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_kernels import launch

from mlirhlo.diagnostics import HloError

HEAD = ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .param .b32 p; .param .b32 q;"
ENTRY = f""".visible .entry k(.param .u64 x) {{ {HEAD}
 ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; rem.u32 %r2, %r1, 12;
 st.param.b32 [p], %r2; call (q), @@, (p); ld.param.b32 %r3, [q]; st.global.u32 [%rd1], %r3; ret; }}"""
FIBONACCI = f""".func (.param .b32 r) fibonacci(.param .b32 a) {{ {HEAD} .local .align 4 .b8 kept[8];
 ld.param.u32 %r1, [a]; setp.lt.u32 %p1, %r1, 2; @%p1 bra END;
 mov.u64 %rd1, kept; st.local.u32 [%rd1], %r1;
 sub.u32 %r2, %r1, 1; st.param.b32 [p], %r2; call (q), fibonacci, (p); ld.param.b32 %r3, [q];
 ld.local.u32 %r5, [kept]; sub.u32 %r2, %r5, 2; st.param.b32 [p], %r2; call (q), fibonacci, (p); ld.param.b32 %r4, [q];
 ld.local.u32 %r6, [%rd1]; setp.ne.u32 %p1, %r6, %r1; @%p1 trap;
 add.u32 %r1, %r3, %r4;
 END: st.param.b32 [r], %r1; ret; }}
{ENTRY.replace("@@", "fibonacci")}"""


def parity(name: str, other: str, at_zero: int) -> str:
    """A function that is `at_zero` at 0 and else what `other` is one below."""
    return f""".func (.param .b32 r) {name}(.param .b32 a) {{ {HEAD}
 ld.param.u32 %r1, [a]; mov.u32 %r3, {at_zero}; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;
 sub.u32 %r2, %r1, 1; st.param.b32 [p], %r2; call (q), {other}, (p); ld.param.b32 %r3, [q];
 END: st.param.b32 [r], %r3; ret; }}"""


DECLARED = ".func (.param .b32 r) {}(.param .b32 a);"


def results(text: str) -> list[int]:
    """What the first twelve threads write, of whom each has another depth of calls."""
    report, (found,) = launch(text, np.zeros(64, np.uint32), block=64)
    assert not report.findings
    return found[:12].tolist()


def test_a_call_of_itself_has_its_own_registers_and_local_memory() -> None:
    assert results(FIBONACCI) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_two_functions_call_each_other() -> None:
    parts = (DECLARED.format("odd"), parity("even", "odd", 1), parity("odd", "even", 0))
    assert results("\n".join((*parts, ENTRY.replace("@@", "even")))) == [1, 0] * 6


def test_endless_recursion_ends_in_an_error() -> None:
    with pytest.raises(HloError, match=r"HLO0775.*fibonacci needs more than"):
        results(FIBONACCI.replace("@%p1 bra END;", ""))


@pytest.mark.parametrize("linkage", [".extern ", "", ".weak "])
def test_a_function_that_is_only_declared_is_named(linkage: str) -> None:
    text = linkage + DECLARED.format("elsewhere") + ENTRY.replace("@@", "elsewhere")
    with pytest.raises(HloError, match=r"HLO0772.*elsewhere has no body"):
        results(text)


def test_the_address_of_a_declared_function_is_named() -> None:
    text = (
        ".extern .func f(); .visible .entry k(.param .u64 x) { .reg .b64 %a; mov.u64 %a, f; ret; }"
    )
    with pytest.raises(HloError, match=r"HLO0773.*f is not defined"):
        launch(text, np.zeros(1, np.uint32))


def test_functions_without_instructions_return() -> None:
    for body in ("call f; ret;", ""):
        text = f".func f() {{}} .visible .entry k(.param .u64 x) {{ {body} }}"
        assert not launch(text, np.zeros(1, np.uint32))[0].findings
