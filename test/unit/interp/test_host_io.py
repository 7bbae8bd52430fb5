"""Infeed, outfeed, send and recv."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module, run_spmd
from mlirhlo.interp.machine import Machine


def test_infeed_and_outfeed() -> None:
    module = parse_module(
        """HloModule m
ENTRY e {
  start = token[] after-all()
  in = ((f32[2], s32[]), token[]) infeed(start)
  data = (f32[2], s32[]) get-tuple-element(in), index=0
  after = token[] get-tuple-element(in), index=1
  x = f32[2] get-tuple-element(data), index=0
  y = f32[2] negate(x)
  out = token[] outfeed(y, after), outfeed_shape=f32[2]
  ROOT r = f32[2] add-dependency(x, out)
}
"""
    )
    machine = Machine()
    machine.feed(([1.0, 2.0], 5))
    machine.feed(([3.0, 4.0], 6))
    assert run_module(module, [], machine=machine)[0].tolist() == [1, 2]
    assert run_module(module, [], machine=machine)[0].tolist() == [3, 4]
    assert [v.tolist() for v in machine.outfed()] == [[-1, -2], [-3, -4]]
    assert machine.outfed() == []
    with pytest.raises(HloError) as caught:
        run_module(module, [], machine=machine)
    assert caught.value.code == "HLO0352"
    assert "infeed" in str(caught.value)


def test_infeed_checks_what_it_is_fed() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { t = token[] after-all()\n ROOT i = (f32[2], token[]) infeed(t) }\n"
    )
    machine = Machine()
    machine.feed(np.zeros(3, np.float32))
    with pytest.raises(HloError, match="HLO0303"):
        run_module(module, [], machine=machine)


def test_host_transfers() -> None:
    module = parse_module(
        """HloModule m
ENTRY e {
  t = token[] after-all()
  p = f32[2] parameter(0)
  s = (f32[2], u32[], token[]) send(p, t), channel_id=7, is_host_transfer=true
  sd = token[] send-done(s), channel_id=7, is_host_transfer=true
  r = (f32[2], u32[], token[]) recv(sd), channel_id=8, is_host_transfer=true
  rd = (f32[2], token[]) recv-done(r), channel_id=8, is_host_transfer=true
  ROOT x = f32[2] get-tuple-element(rd), index=0
}
"""
    )
    machine = Machine()
    machine.host_send(8, np.array([5, 6], np.float32))
    assert run_module(module, [np.ones(2, np.float32)], machine=machine)[0].tolist() == [5, 6]
    assert [v.tolist() for v in machine.host_received(7)] == [[1, 1]]
    with pytest.raises(HloError, match="HLO0352"):
        run_module(module, [np.ones(2, np.float32)], machine=machine)


PAIRS = """HloModule m, num_partitions={partitions}
ENTRY e {{
  t = token[] after-all()
  p = f32[1] parameter(0)
  r = (f32[1], u32[], token[]) recv(t), channel_id=1{attributes}
  s = (f32[1], u32[], token[]) send(p, t), channel_id=1{attributes}
  rd = (f32[1], token[]) recv-done(r), channel_id=1
  sd = token[] send-done(s), channel_id=1
  ROOT x = f32[1] get-tuple-element(rd), index=0
}}
"""


def test_send_and_recv_between_partitions() -> None:
    attributes = ", frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}"
    text = PAIRS.format(
        partitions=3, attributes=attributes.replace("={{0", '="{{0').replace("}}}", '}}"}')
    )
    got = run_spmd(parse_module(text), [[np.array([d], np.float32)] for d in range(3)])
    assert [r[0].tolist() for r in got] == [[0], [0], [1]]


def test_send_and_recv_on_one_device() -> None:
    text = PAIRS.format(partitions=1, attributes="")
    assert run_module(parse_module(text), [np.array([4], np.float32)])[0].tolist() == [4]


def test_recv_without_send_is_a_deadlock() -> None:
    text = """HloModule m
ENTRY e { t = token[] after-all()
  r = (f32[], u32[], token[]) recv(t), channel_id=3
  rd = (f32[], token[]) recv-done(r), channel_id=3
  ROOT x = f32[] get-tuple-element(rd), index=0 }
"""
    with pytest.raises(HloError) as caught:
        run_module(parse_module(text), [])
    assert caught.value.code == "HLO0351"
    assert "a send on channel 3" in str(caught.value)
