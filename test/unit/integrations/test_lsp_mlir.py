"""Editors on MLIR: StableHLO, kernels and our own form; and every request of the protocol by a real client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import DATA
from unit.integrations.test_lsp import asked

from mlirhlo import load
from mlirhlo.debug.editor import features, mlir
from mlirhlo.debug.editor.document import Document, Span
from mlirhlo.debug.editor.languages import answers
from mlirhlo.diagnostics import HloError

LOOP = """// a loop
module @m {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg0) : tensor<i32>, tensor<4xf32>
     cond {
      %3 = stablehlo.compare  LT, %iterArg, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @square(%iterArg_0) : (tensor<4xf32>) -> tensor<4xf32>
      %4 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32> loc("f.py":7:1)
  }
  func.func private @square(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4xf32> loc("f.py":3:2)
    return %0 : tensor<4xf32>
  }
}
"""


def document(text: str = LOOP, file: str = "m.mlir") -> Document:
    opened = Document(file)
    opened.update(text)
    return opened


def named(opened: Document, spans: list[Span]) -> list[tuple[int, str]]:
    return [(s.line, opened.lines[s.line].text[s.start : s.end]) for s in spans]


def test_values_of_regions_and_functions() -> None:
    """Names that come again in another region or function are others."""
    opened = document()
    assert answers(opened) is mlir
    lines = opened.text.split("\n")
    assert named(opened, mlir.references(opened, 6, lines[6].index("%3"))) == [(6, "%3"), (7, "%3")]
    assert named(opened, mlir.references(opened, 11, lines[11].index("%3"))) == [
        (9, "%3"),
        (11, "%3"),
    ]
    assert named(opened, mlir.references(opened, 4, lines[4].index("%iterArg "))) == [
        (4, "%iterArg"), (6, "%iterArg"), (10, "%iterArg"),
    ]  # fmt: skip
    assert named(opened, mlir.references(opened, 13, lines[13].index("%0"))) == [
        (4, "%0"),
        (13, "%0"),
    ]
    assert [s.line for s in mlir.references(opened, 15, lines[15].index("%arg0"))] == [15, 16, 16]
    assert named(opened, mlir.references(opened, 9, lines[9].index("@square"))) == [
        (15, "@square"),
        (9, "@square"),
    ]


def test_rename_leaves_others_alone() -> None:
    opened = document()
    edits = mlir.rename(opened, 9, LOOP.split("\n")[9].index("@square"), "sq")
    assert sorted((s.line, text) for s, text in edits) == [(9, "@sq"), (15, "@sq")]
    assert mlir.rename(opened, 0, 0, "x") == []
    for name in ("main", "a b", ""):
        with pytest.raises(HloError) as raised:
            mlir.rename(opened, 15, LOOP.split("\n")[15].index("@square"), name)
        assert raised.value.code == "HLO0879"


def test_hover_outline_folds_tokens() -> None:
    opened = document()
    lines = LOOP.split("\n")
    page = mlir.hover(opened, 16, lines[16].index("%0")) or ""
    assert all(part in page for part in ("16 bytes", "f.py:3", "1 use"))
    assert "operands: `lhs`, `rhs`" in (mlir.hover(opened, 16, lines[16].index("multiply")) or "")
    assert "16 bytes" in (mlir.hover(opened, 2, lines[2].index("%arg0")) or "")
    assert [(s.name, s.first, s.last) for s in mlir.outline(opened)] == [
        ("@main", 2, 14),
        ("@square", 15, 18),
    ]
    assert [c.name for c in mlir.outline(opened)[1].children] == ["%arg0", "%0"]
    assert mlir.folds(opened) == [(1, 19), (2, 14), (5, 8), (8, 12), (15, 18)]
    assert len(mlir.tokens(opened)) % 5 == 0
    assert mlir.tokens(opened)[3] == features.TOKEN_TYPES.index("comment")


def test_completion() -> None:
    text = LOOP.replace("multiply %arg0, %arg0 : tensor<4xf32>", "multiply %")
    opened = document(text)
    line = next(
        k
        for k, x in enumerate(opened.lines)
        if x.text.rstrip().endswith('multiply % loc("f.py":3:2)')
    )
    column = opened.lines[line].text.index("%", 10) + 1
    assert [c.label for c in mlir.completions(opened, line, column)] == ["%arg0"]
    opened = document(LOOP.replace("%4 = stablehlo.add %iterArg, %c : tensor<i32>", "%4 = stab"))
    assert "stablehlo.add" in [c.label for c in mlir.completions(opened, 10, 15)]
    opened = document(LOOP.replace("@square(%iterArg_0)", "@"))
    assert [c.label for c in mlir.completions(opened, 9, opened.lines[9].text.index("@") + 1)] == [
        "@m",
        "@main",
        "@square",
    ]
    values = [c.label for c in mlir.completions(document(), 11, len("      stablehlo.return %"))]
    assert values[:2] == ["%4", "%3"]


def test_edits_of_mlir_are_checked_as_a_whole() -> None:
    opened = document(LOOP)
    opened.check_all()
    assert opened.diagnostics == []
    opened.update(LOOP.replace("multiply %arg0", "multply %arg0"))
    assert opened.diagnostics == []
    opened.check_all()
    (diagnostic, *_) = opened.diagnostics
    assert diagnostic.place is not None
    assert diagnostic.place.line == 17
    titles = [m.title for m in answers(opened).mends(opened, diagnostic)]
    assert titles == ["change to stablehlo.multiply"]


def test_every_name_of_real_texts_is_resolved(tmp_path: Path) -> None:
    """Our MLIR form of dumps, and kernels."""
    files = sorted(DATA.glob("dumps/*/*before_optimizations.txt"))[:3]
    texts = [load(str(file)).as_text("mlir") for file in files]
    texts += [file.read_text() for file in sorted((DATA / "mosaic").rglob("*.mlir"))[:3]]
    assert len(texts) > 3
    for text in texts:
        opened = document(text)
        known = mlir._names_of(text)  # pyright: ignore[reportPrivateUsage]
        named_spans = [
            Span(at, m.start(), m.end())
            for at, line in enumerate(opened.lines)
            for m in mlir._NAME.finditer(features.blanked(line.text).partition("//")[0])  # pyright: ignore[reportPrivateUsage]
        ]
        assert opened.is_mlir
        assert named_spans
        missing = [s for s in named_spans if s not in known.at]
        assert not [opened.lines[s.line].text for s in missing]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["hlo", "mlir"])
def test_a_client_asks_for_everything(ending: str, tmp_path: Path) -> None:
    lsp = pytest.importorskip("lsprotocol.types")
    hlo = """HloModule m

ENTRY main {
  x = f32[8,16] parameter(0)
  e = f32[8,16] exponential(x)
  ROOT f = f32[16,8] floor(e)
}
"""
    text = LOOP if ending == "mlir" else hlo
    at = (16, 5) if ending == "mlir" else (4, 2)
    file = tmp_path / f"m.{ending}"
    file.write_text(text)

    async def question(client: Any, uri: str, published: list[Any]) -> None:
        this, position = lsp.TextDocumentIdentifier(uri), lsp.Position(*at)
        hover = await client.text_document_hover_async(lsp.HoverParams(this, position))
        assert "bytes" in hover.contents.value
        named = lsp.ReferenceParams(lsp.ReferenceContext(True), this, position)
        spans = await client.text_document_references_async(named)
        assert [s.range.start.line for s in spans] == [at[0], at[0] + 1]
        edit = await client.text_document_rename_async(lsp.RenameParams(this, position, "new"))
        assert [e.new_text.lstrip("%") for e in edit.changes[uri]] == ["new", "new"]
        with pytest.raises(Exception, match="HLO0879"):
            await client.text_document_rename_async(lsp.RenameParams(this, position, "a b"))
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(this))
        assert folds
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(this))
        assert symbols[0].children
        tokens = await client.text_document_semantic_tokens_full_async(
            lsp.SemanticTokensParams(this)
        )
        assert tokens.data
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(40, 0))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(this, whole))
        assert bool(hints) is (ending == "hlo")
        typed = lsp.Position(at[0], text.split("\n")[at[0]].index("=") + 2)
        listed = await client.text_document_completion_async(lsp.CompletionParams(this, typed))
        if ending == "mlir":
            assert any(item.label == "stablehlo.multiply" for item in listed.items)
            return
        said = await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("mlirhlo.graph", arguments=[uri])
        )
        assert "<html" in Path(said.removeprefix("file://")).read_text()[:200]
        Path(said.removeprefix("file://")).unlink()
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(this, whole, lsp.CodeActionContext([]))
        )
        titles = [a.title for a in actions]
        assert titles == [
            "declare f32[8,16]",
            "run on the interpreter",
            "open the graph",
            "reduce the module",
        ]
        said = await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("mlirhlo.reduce", arguments=[uri])
        )
        smaller = Path(said.removeprefix("file://"))
        assert "exponential" not in smaller.read_text()
        assert " floor(" in smaller.read_text()
        smaller.unlink()

    asked(question, text, file)
