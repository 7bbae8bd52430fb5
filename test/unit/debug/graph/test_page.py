"""The html: what it carries, what its policy allows, that it says the same twice."""

import base64
import gzip
import hashlib
import importlib.util
import json
import re
from typing import Any
from urllib.parse import unquote

import pytest
from support import DATA

from mlirhlo.debug.graph import GraphOptions, Stage, page, render
from mlirhlo.debug.graph.page import layout_library, viewer_script
from mlirhlo.debug.graph.recorded import recorded_stages
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module

BEFORE = (DATA / "dumps/cpu/module_0000.jit_mlp.before_optimizations.txt").read_text()
SMALL = "ENTRY e { a = f32[4] parameter(0)  b = f32[4] add(a, a)  ROOT c = f32[4] negate(b) }"


def data_of(html: str) -> dict[str, Any]:
    packed = re.search(r'id="data">([^<]*)</script>', html)
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_same_bytes_twice() -> None:
    assert render(parse_module(BEFORE), "html") == render(parse_module(BEFORE), "html")


def test_policy_allows_one_script_and_one_style() -> None:
    html = render(parse_module(SMALL), "html")
    script = re.search(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert script is not None
    assert style is not None
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1] == (
        f"default-src 'none'; script-src '{hash_of(script[1])}'; style-src '{hash_of(style[1])}';"
        " base-uri 'none'; form-action 'none'"
    )
    assert html.count("<script") == 2
    assert " style=" not in html, "the policy would refuse it"
    assert not re.search(r"\son\w+=\"", html), "handlers in markup would be refused too"


def test_nothing_from_elsewhere() -> None:
    html = render(parse_module(SMALL), "html")
    assert not re.search(r"""\b(?:src|href|action|data)\s*=\s*["']?(?:https?:)?//""", html)
    assert "@import" not in html
    assert "url(" not in html.replace("url(#", "")
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "importScripts", "eval(", "innerHTML"):
        assert word not in viewer_script().replace("//", ""), word


def test_hostile_text_stays_in_the_data() -> None:
    module = parse_module(SMALL)
    names = (
        "</script><script>alert(1)</script>",
        "</title><img src=x onerror=alert(2)>",
        "x" * 100_000,
    )
    for op, name in zip(HloModule(module).entry.instructions, names, strict=True):
        op.instruction_name = name
    html = render(module, "html", GraphOptions(label=names[1]))
    assert html.count("<script") == 2
    assert "<img" not in html
    assert [record[0] for record in data_of(html)["records"]] == list(names)


def test_records_say_what_an_instruction_is() -> None:
    data = data_of(render(parse_module(BEFORE), "html"))
    records = {r[0]: dict(zip(data["fields"], r, strict=True)) for r in data["records"]}
    dot = records["dot_general.1"]
    assert dot["opcode"] == "dot"
    assert dot["operands"] == ["x.1", "constant.9"]
    assert dot["source"] == "sample_mlp.py:13"
    assert dot["flops"] == 2 * 4 * 8 * 16
    assert dot["bytes"] == 4 * 4 * 16
    assert dot["category"] == "dark-blue"
    assert dot["text"].startswith("%dot_general.1 = f32[4,16]{1,0} dot(%x.1, %constant.9)")
    assert records["reduce_sum.7"]["calls"] == ["region_1.3"]


def test_stages_share_what_they_have_in_common() -> None:
    module = parse_module(BEFORE)
    stages = recorded_stages(module, "call-inliner,algsimp,algsimp")
    assert [stage.label for stage in stages] == ["before", "after call-inliner", "after algsimp"]
    data = data_of(render(module, "html", GraphOptions(stages=stages)))
    assert [stage["label"] for stage in data["stages"]] == [stage.label for stage in stages]
    first, last = (set(data["stages"][i]["computations"]) for i in (0, -1))
    assert first & last, "a computation that no pass touched is stored once"
    assert len(data["records"]) < sum(len(c[4]) for c in data["computations"])


def test_the_module_itself_is_the_last_stage() -> None:
    before, module = parse_module(SMALL), parse_module(SMALL)
    html = render(
        module, "html", GraphOptions(stages=(Stage("first", before, "a b.txt"),), file="c.txt")
    )
    assert [(s["label"], s["file"]) for s in data_of(html)["stages"]] == [
        ("first", "./a%20b.txt"),
        ("the module", "./c.txt"),
    ]


def test_a_module_without_entry_is_shown() -> None:
    module = parse_module(SMALL)
    del HloModule(module).entry.properties["is_entry"]
    assert data_of(render(module, "html"))["computations"][0][0] == "e"


def test_url_is_the_page() -> None:
    address = render(parse_module(SMALL), "url")
    head, _, body = address.partition(",")
    assert head == "data:text/html;base64"
    assert base64.b64decode(body).decode() == render(parse_module(SMALL), "html")


def test_url_of_a_server_carries_the_dot() -> None:
    options = GraphOptions(server="graphs.invalid/#")
    address = render(parse_module(SMALL), "url", options)
    head, _, body = address.partition("#")
    assert head == "graphs.invalid/"
    assert unquote(body) == render(parse_module(SMALL), "dot", GraphOptions(hover=False))
    assert " " not in body
    assert "<" not in body


def test_viewer_files_are_all_in() -> None:
    """A file forgotten in the list would be missing from the page, an import left in it would fail."""
    folder = page._VIEWER
    assert {p.name for p in folder.glob("*.js")} == set(page._SCRIPTS)
    assert not re.search(r"^import ", viewer_script(), re.MULTILINE)
    assert layout_library().name == "dagre.js"


def test_no_layout_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HloError, match="HLO0542"):
        layout_library()
