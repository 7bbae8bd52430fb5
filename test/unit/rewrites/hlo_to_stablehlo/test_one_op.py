"""Every kind of instruction: the program is sound, and back in HLO it computes the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.rewrites.hlo_to_stablehlo.programs_in_hlo import LINES, module

import mlirhlo
from mlirhlo.analysis.stablehlo import verify_module
from mlirhlo.analysis.verifier import verify_module as verify_hlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.formats.stablehlo import parse_module as parse_stablehlo
from mlirhlo.formats.stablehlo import print_module
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

INPUTS = (
    np.linspace(-1.5, 1.25, 12, dtype=np.float32).reshape(4, 3),
    np.arange(-4, 8, dtype=np.int32).reshape(4, 3),
    np.float32(0.5),
    np.int32(1),
)


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [np.asarray(value)]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", LINES)
def test_same_bits(name: str) -> None:
    """Through the text of both dialects, with XLA's simplifications off."""
    given = parse_module(module(name))
    assert not verify_hlo(given)
    program = convert_to_stablehlo(given)
    text = print_module(program)
    read = parse_stablehlo(text)
    assert not verify_module(read)
    back = convert_to_hlo(read, simplify=False)
    assert not verify_hlo(back)
    wanted, got = flat(mlirhlo.Module(given)(*INPUTS)), flat(mlirhlo.Module(back)(*INPUTS))
    assert [a.dtype for a in wanted] == [a.dtype for a in got]
    assert [a.tobytes() for a in wanted] == [a.tobytes() for a in got]


MARKED = {
    "acos": "acos(",
    "bitcast-same": "bitcast(",
    "copy": "copy(",
    "fusion": "fusion(",
    "stochastic-convert": "stochastic-convert(",
    "topk-smallest": "largest=false",
    "add-dependency": "add-dependency(",
    "all-to-all-tuple": "all-to-all(",
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", MARKED)
def test_marked_instructions_come_back(name: str) -> None:
    """What StableHLO has no op for is the same instruction again."""
    from mlirhlo.formats.hlo_text import print_module as print_hlo

    back = convert_to_hlo(convert_to_stablehlo(parse_module(module(name))), simplify=False)
    assert MARKED[name] in print_hlo(back)


def test_header_and_parameters() -> None:
    """Shardings, aliases, donors, layouts and counts of devices survive."""
    text = """HloModule m, input_output_alias={ {0}: (0, {1}, may-alias) }, buffer_donor={ (1, {}) }, \
entry_computation_layout={((s32[], f32[4,3]{0,1}), f32[4,3]{1,0})->(f32[4,3]{0,1}, f32[4,3]{1,0})}, \
num_partitions=2
ENTRY e {
  p = (s32[], f32[4,3]{0,1}) parameter(0), sharding={{replicated}, {devices=[2,1]<=[2]}}
  q = f32[4,3] parameter(1), frontend_attributes={a="b"}
  x = f32[4,3]{0,1} get-tuple-element(p), index=1
  ROOT t = (f32[4,3]{0,1}, f32[4,3]) tuple(x, q)
}
"""
    program = print_module(convert_to_stablehlo(parse_module(text)))
    assert "mhlo.num_partitions = 2 : i32" in program
    arguments = program[program.index("@main(") : program.index("->")].split("%arg")[1:]
    assert "tensor<i32>" in arguments[0]
    assert 'mhlo.sharding = "{replicated}"' in arguments[0]
    for part in (
        'mhlo.layout_mode = "{0,1}"',
        'mhlo.sharding = "{devices=[2,1]<=[2]}"',
        "tf.aliasing_output = 0 : i32",
    ):
        assert part in arguments[1]
    assert "jax.buffer_donor = true" in arguments[2]
    assert 'mhlo.frontend_attributes = {a = "b"}' in arguments[2]
    back = mlirhlo.parse(program)
    header = str(back).splitlines()[0]
    assert "{0}: (1, {}, may-alias)" in header
    assert "buffer_donor={ (2, {}) }" in header
    assert "f32[4,3]{0,1}" in header
    assert "num_partitions=2" in header


def test_locations_are_metadata() -> None:
    """Metadata becomes locations, stack frames too."""
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  ROOT n = f32[2] negate(x), metadata={op_name="jit(f)/neg" source_file="f.py" source_line=7}
}
"""
    program = print_module(convert_to_stablehlo(parse_module(text)), debug_info=True)
    assert '"jit(f)/neg"' in program
    assert '"f.py":7:0' in program
    assert 'op_name="jit(f)/neg" source_file="f.py" source_line=7' in str(mlirhlo.parse(program))


def test_opaque_is_an_error() -> None:
    """HLO0427 names the instruction."""
    text = 'HloModule m\nENTRY e {\n  ROOT o = opaque[] custom-call(), custom_call_target="t"\n}\n'
    with pytest.raises(mlirhlo.diagnostics.HloError, match=r"(?s)HLO0427.*%o") as found:
        convert_to_stablehlo(parse_module(text))
    assert found.value.diagnostics[0].place is not None
