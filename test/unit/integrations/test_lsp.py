"""The language server, asked by a real client; its answers, and what an edit of a large module costs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from unit.corpus import repository_texts

from mlirhlo.debug.editor import features
from mlirhlo.debug.editor.document import Document
from mlirhlo.debug.editor.stages import Side, Stages, counterpart

TEXT = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,16] parameter(0), metadata={source_file="f.py" source_line=7}
  e = f32[8,16] exponential(x)
  zero = f32[] constant(0)
  r = f32[8] reduce(e, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[8], f32[8,16]) tuple(r, e)
}
"""


def document(text: str = TEXT) -> Document:
    made = Document("m.hlo")
    made.update(text)
    made.check_all()
    return made


def codes(made: Document) -> list[tuple[int, str]]:
    return [(d.place.line, d.code) for d in made.diagnostics if d.place is not None]


def test_an_edit_is_checked_at_once_and_mended() -> None:
    made = document()
    assert codes(made) == []
    made.update(TEXT.replace("e = f32[8,16] exp", "e = f32[8,17] exp"))
    ((line, code), *_) = codes(made)
    assert (line, code) == (11, "HLO0103")
    (mend, *_) = features.mends(made, made.diagnostics[0])
    assert mend.text == "f32[8,16]"
    made.update(TEXT.replace("reduce(e,", "reduce(f,"))
    assert codes(made) == [(13, "HLO0006")]
    made.update(TEXT)
    assert codes(made) == []


@pytest.mark.parametrize(
    "old, new",
    [
        ("exponential(x)", "exponential(y)"),
        ("f32[8] reduce", "f32[9] reduce"),
        ("dimensions={1}", "dimensions={2}"),
        ("tuple(r, e)", "tuple(r, q)"),
        ("constant(0)", "constant(zero)"),
        ("exponential(x)", "exponentia(x)"),
    ],
)
def test_what_the_edit_shows_is_what_the_whole_shows(old: str, new: str) -> None:
    """The small module of a line finds what the check of the whole finds, on the same line."""
    made = document()
    made.update(TEXT.replace(old, new))
    quick = {line for line, _ in codes(made)}
    made.check_all()
    assert quick
    assert {line for line, _ in codes(made)} & quick


def test_edits_leave_what_a_new_document_has() -> None:
    """Lines added, taken away, moved: names, users and computations are those of the text."""
    made = document()
    for text in (
        TEXT.replace("  zero", "  n = f32[8,16] negate(e)\n  zero"),
        TEXT.replace("add {", "sum {").replace("to_apply=add", "to_apply=sum"),
        TEXT.replace("}\n\nENTRY", "}\n\nother {\n  ROOT z = f32[] parameter(0)\n}\n\nENTRY"),
        TEXT.replace("  e = f32[8,16] exponential(x)\n", ""),
        TEXT,
    ):
        made.update(text)
        fresh = document(text)
        assert made.text == text
        both = [[(b.start, b.names, b.users) for b in d.blocks] for d in (made, fresh)]
        for (start, names, users), (start2, names2, users2) in zip(*both, strict=True):
            assert (start, names) == (start2, names2)
            assert {k: sorted(v) for k, v in users.items() if v} == users2


def test_names() -> None:
    made = document()
    assert features.definition(made, 12, 21) == features.definition(made, 10, 2)
    assert [s.line for s in features.references(made, 10, 2)] == [10, 12, 13]
    called = features.definition(made, 12, 55)
    assert called is not None
    assert called.line == 2
    assert [s.line for s in features.references(made, 12, 55)] == [2, 12]
    edits = features.rename(made, 10, 2, "exp")
    assert len(edits) == 3
    assert "add(" in made.lines[5].text


def test_hover_completion_outline_hints_tokens() -> None:
    made = document()
    page = features.hover(made, 10, 2) or ""
    assert "512 bytes" in page
    assert "bytes accessed" in page
    assert "f.py:7" in (features.hover(made, 9, 2) or "")
    assert "exponential" in (features.hover(made, 10, 17) or "")
    opcodes = features.completions(made, 10, 18)
    assert any(c.label == "exponential" for c in opcodes)
    made.update(TEXT.replace("exponential(x)", "exponential("))
    assert features.completions(made, 10, 28)[0].label == "x"
    made.update(TEXT.replace("dimensions={1}, to_apply=add", ""))
    assert {"dimensions=", "to_apply="} <= {c.label for c in features.completions(made, 12, 29)}
    outline = features.outline(document())
    assert [(s.name, s.detail) for s in outline] == [("add", ""), ("main", "ENTRY")]
    assert [c.name for c in outline[1].children] == ["x", "e", "zero", "r", "t"]
    assert (12, 21, ": f32[8,16]") in features.inlay_shapes(document(), 12, 12)
    assert len(features.tokens(document())) % 5 == 0


@pytest.mark.slow
def test_an_edit_of_a_large_module_is_quick() -> None:
    rows = [f"  v{n} = f32[8]{{0}} add(v{n - 1}, v{n - 2})" for n in range(2, 50_000)]
    start = [
        "HloModule m",
        "",
        "ENTRY e {",
        "  v0 = f32[8]{0} parameter(0)",
        "  v1 = f32[8]{0} parameter(1)",
    ]
    rows = [*start, *rows, "  ROOT r = f32[8]{0} negate(v49999)", "}", ""]
    made = Document("m.hlo")
    made.update("\n".join(rows))
    made.check_all()
    times = []
    for shape in ("f32[9]{0}", "f32[8]{0}", "f32[7]{0}"):
        rows[25_000] = rows[25_000].replace(rows[25_000].split()[2], shape)
        text = "\n".join(rows)
        begun = time.process_time()
        made.update(text)
        found = made.diagnostics
        times.append(time.process_time() - begun)
        assert bool(found) is (shape != "f32[8]{0}")
    assert min(times) < 0.1


def test_dumps_have_no_diagnostics_and_every_line_has_tokens() -> None:
    for name, text in list(repository_texts())[:12]:
        made = Document(name)
        made.update(text)
        assert sum(1 for b in made.blocks for _ in b.instructions()) == len(
            [x for x in made.lines if x.match]
        )
        features.tokens(made)
        features.outline(made)


def test_the_grammar_for_editors_has_the_tokens_of_the_server() -> None:
    """Patterns, and what they find in a line; other engines know all that they use."""
    import editor_grammar

    for language in editor_grammar.LANGUAGES:
        file = editor_grammar.file_of(language)
        assert file.read_text() == editor_grammar.grammar(language)
    line = '  ROOT %r = (f32[8]{0}) custom-call(%a, /*index=1*/%b), custom_call_target="x", dim={1}'
    made = Document("m.hlo")
    made.update(f"HloModule m\n{line}\n")
    data, column, kinds = features.tokens(made), 0, []
    for at in range(0, len(data), 5):
        column = data[at + 1] + (0 if data[at] else column)
        text = made.lines[1].text[column : column + data[at + 2]]
        kinds.append((text, features.TOKEN_TYPES[data[at + 3]]))
    assert kinds[1:] == [
        ("ROOT", "keyword"), ("%r", "variable"), ("f32", "type"), ("8", "number"), ("0", "number"),
        ("custom-call", "function"), ("%a", "variable"), ("/*index=1*/", "comment"), ("%b", "variable"),
        ("custom_call_target", "property"), ('"x"', "string"), ("dim", "property"), ("1", "number"),
    ]  # fmt: skip


STAGES = {
    "module_0000.m.0000.p.after_pipeline-start.before_algsimp.txt": """HloModule m

ENTRY main {
  %x = f32[8] parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8] broadcast(%zero), dimensions={}
  %y = f32[8] add(%x, %zeros)
  ROOT %e = f32[8] exponential(%y)
}
""",
    "module_0000.m.0001.p.after_algsimp.before_fusion.txt": """HloModule m

ENTRY main {
  %x = f32[8] parameter(0)
  ROOT %e.1 = f32[8] exponential(%x)
}
""",
    "module_0000.m.0002.p.after_fusion.before_cse.txt": """HloModule m

fused {
  %p = f32[8] parameter(0)
  ROOT %e.2 = f32[8] exponential(%p)
}

ENTRY main {
  %x = f32[8] parameter(0)
  ROOT %fusion = f32[8] fusion(%x), kind=kLoop, calls=%fused
}
""",
}


@pytest.fixture
def dump(tmp_path: Path) -> list[Path]:
    """Files of a dump folder in the order of their stages."""
    files = [tmp_path / name for name in STAGES]
    for file, text in zip(files, STAGES.values(), strict=True):
        file.write_text(text)
    return files


def test_an_instruction_is_found_in_the_stages_beside(dump: list[Path]) -> None:
    """By structure: renamed, in a fusion, or not at all."""
    stages = Stages()

    def beside(number: int, name: str, side: Side) -> str | None:
        opened = Document(str(dump[number]))
        opened.update(dump[number].read_text())
        line = next(at for at, x in enumerate(opened.lines) if x.name == name)
        stage = stages.beside(str(dump[number]), side)
        assert stage is not None
        column = opened.lines[line].text.index(name)
        span = counterpart(opened, line, column, stage, side)
        return span and Path(stage.path).read_text().split("\n")[span.line][span.start : span.end]

    assert stages.beside(str(dump[0]), Side.BEFORE) is None
    assert stages.beside(str(dump[2]), Side.AFTER) is None
    assert stages.beside(str(dump[0].parent / "other.hlo"), Side.AFTER) is None
    assert beside(0, "e", Side.AFTER) == "%e.1"
    assert beside(0, "zeros", Side.AFTER) is None
    assert beside(1, "e.1", Side.BEFORE) == "%e"
    assert beside(1, "e.1", Side.AFTER) == "%e.2"
    assert beside(2, "e.2", Side.BEFORE) == "%e.1"
    dump[2].unlink()
    assert stages.beside(str(dump[1]), Side.AFTER) is None


# ---------------------------------------------------------------- a client


def asked(
    question: Callable[[Any, str, list[Any]], Awaitable[None]],
    text: str = TEXT,
    file: Path = Path("/tmp/m.hlo"),
) -> None:
    """Starts the server as editors do, opens a text, asks, and says goodbye."""
    pytest.importorskip("pygls")
    from lsprotocol import types as lsp
    from pygls.lsp.client import LanguageClient

    async def session() -> None:
        client = LanguageClient("test", "1")
        published: list[Any] = []

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def taken(params: Any) -> None:
            published.append(params)

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def shown(params: Any) -> None:
            pass

        await client.start_io(sys.executable, str(ROOT / "tools" / "mlirhlo-lsp"))
        await client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
        uri = file.as_uri()
        client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "hlo", 1, text))
        )
        await question(client, uri, published)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(asyncio.wait_for(session(), 60))


@pytest.mark.slow
def test_a_client_gets_diagnostics_names_and_mends() -> None:
    lsp = pytest.importorskip("lsprotocol.types")

    async def question(client: Any, uri: str, published: list[Any]) -> None:
        this = lsp.TextDocumentIdentifier(uri)
        hover = await client.text_document_hover_async(lsp.HoverParams(this, lsp.Position(10, 2)))
        assert "512 bytes" in hover.contents.value
        found = await client.text_document_definition_async(
            lsp.DefinitionParams(this, lsp.Position(12, 20))
        )
        assert found.range.start.line == 10
        change = lsp.TextDocumentContentChangePartial(
            lsp.Range(lsp.Position(10, 6), lsp.Position(10, 15)), "f32[8,17]"
        )
        client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(2, uri), [change])
        )
        whole = lsp.Range(lsp.Position(10, 0), lsp.Position(10, 1))
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(this, whole, lsp.CodeActionContext([]))
        )
        assert actions[0].title == "declare f32[8,16]"
        assert any(d.code == "HLO0103" for p in published for d in p.diagnostics)
        for request, params in (
            (client.text_document_document_symbol_async, lsp.DocumentSymbolParams(this)),
            (client.text_document_folding_range_async, lsp.FoldingRangeParams(this)),
            (client.text_document_semantic_tokens_full_async, lsp.SemanticTokensParams(this)),
            (client.text_document_inlay_hint_async, lsp.InlayHintParams(this, whole)),
            (
                client.text_document_completion_async,
                lsp.CompletionParams(this, lsp.Position(10, 16)),
            ),
        ):
            assert await request(params) is not None

    asked(question)


@pytest.mark.slow
def test_a_client_runs_the_module_and_sees_what_is_no_module() -> None:
    lsp = pytest.importorskip("lsprotocol.types")

    async def question(client: Any, uri: str, published: list[Any]) -> None:
        said = await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("mlirhlo.run", arguments=[uri])
        )
        assert said.startswith("float32[8]")
        change = lsp.TextDocumentContentChangeWholeDocument("HloModule m\n\nENTRY {{{")
        client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(lsp.VersionedTextDocumentIdentifier(2, uri), [change])
        )
        said = await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("mlirhlo.run", arguments=[uri])
        )
        assert "error[" in said

    asked(question)


@pytest.mark.slow
def test_a_client_goes_from_stage_to_stage(dump: list[Path]) -> None:
    lsp = pytest.importorskip("lsprotocol.types")

    async def question(client: Any, uri: str, published: list[Any]) -> None:
        this, at = lsp.TextDocumentIdentifier(uri), lsp.Position(4, 8)
        before = await client.text_document_declaration_async(lsp.DeclarationParams(this, at))
        assert (before.uri, before.range.start.line) == (dump[0].as_uri(), 7)
        after = await client.text_document_implementation_async(lsp.ImplementationParams(this, at))
        assert (after.uri, after.range.start.line) == (dump[2].as_uri(), 4)
        whole = lsp.Range(at, at)
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(this, whole, lsp.CodeActionContext([]))
        )
        opened = [x.arguments[0] for x in actions if x.command == "mlirhlo.show"]
        assert opened == [dump[0].as_uri(), dump[2].as_uri()]

    asked(question, dump[1].read_text(), dump[1])
