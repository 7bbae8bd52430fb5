"""The language server: `mlirhlo.debug.editor` for any editor, over standard input and output (pygls)."""

# pygls types features by decorators that pyright cannot follow.
# pyright: reportUnusedFunction=false, reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from mlirhlo import __version__
from mlirhlo.debug.editor import features
from mlirhlo.debug.editor.document import Document, Span, whole_diagnostics
from mlirhlo.debug.editor.languages import Answers, answers
from mlirhlo.debug.editor.stages import Side, Stages, counterpart
from mlirhlo.debug.graph import render
from mlirhlo.debug.trials.conditions import Condition, fake_arguments, load_module
from mlirhlo.debug.trials.workers import Limits
from mlirhlo.diagnostics import Diagnostic, HloError, Severity
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import reduce
    from mlirhlo.debug.trials import sides


QUIET_SECONDS = 0.6
"""After the last edit, until the whole module is checked."""
_REDUCE_SECONDS = 30.0
"""CPU time of an attempt."""
COMMANDS = ("mlirhlo.run", "mlirhlo.graph", "mlirhlo.reduce")
_KINDS = {
    "opcode": lsp.CompletionItemKind.Function,
    "attribute": lsp.CompletionItemKind.Property,
    "operand": lsp.CompletionItemKind.Variable,
    "computation": lsp.CompletionItemKind.Module,
}


class Server(LanguageServer):
    """One server with the documents that are open."""

    def __init__(self) -> None:
        super().__init__("mlirhlo-lsp", __version__)
        self.documents: dict[str, Document] = {}
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.stages = Stages()
        self.checker = ThreadPoolExecutor(1)

    def document(self, uri: str) -> Document:
        """An open document; an empty one for what is not open."""
        return self.documents.get(uri) or Document(to_fs_path(uri) or uri)

    def take(self, uri: str, text: str) -> None:
        """Follows a text, tells what is wrong at once, and checks the whole later."""
        document = self.documents.setdefault(uri, Document(to_fs_path(uri) or uri))
        document.update(text)
        self.publish(uri, document.diagnostics)
        if (timer := self.timers.pop(uri, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self.timers[uri] = loop.call_later(QUIET_SECONDS, self.check, uri)

    def check(self, uri: str) -> None:
        """Checks the whole text beside the edits that follow, and publishes what is wrong."""
        document = self.documents.get(uri)
        if document is not None:
            text, loop = document.text, asyncio.get_running_loop()
            checked = loop.run_in_executor(self.checker, whole_diagnostics, text, document.file)
            checked.add_done_callback(lambda done: self.take_checked(uri, text, done.result()))

    def take_checked(self, uri: str, text: str, diagnostics: list[Diagnostic]) -> None:
        """Publishes what is wrong with a text, unless it was edited since."""
        document = self.documents.get(uri)
        if document is not None and document.text == text:
            document.take_diagnostics(diagnostics)
            self.publish(uri, document.diagnostics)

    async def show(self, uri: str, *, in_browser: bool = False) -> None:
        """Has the editor open a file; one that cannot is told where it is."""
        params = lsp.ShowDocumentParams(uri, external=in_browser, take_focus=True)
        try:
            await self.window_show_document_async(params)
        except JsonRpcMethodNotFound:
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, uri))

    def publish(self, uri: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Sends diagnostics."""
        sent = [_diagnostic(d) for d in diagnostics]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, sent))


def _diagnostic(diagnostic: Diagnostic) -> lsp.Diagnostic:
    at = diagnostic.place
    line = max(at.line - 1, 0) if at is not None else 0
    column = max(at.column - 1, 0) if at is not None else 0
    length = at.length if at is not None and at.column else 200
    message = diagnostic.message + (f"\n{diagnostic.help}" if diagnostic.help else "")
    severity = {
        "error": lsp.DiagnosticSeverity.Error,
        "warning": lsp.DiagnosticSeverity.Warning,
    }.get(diagnostic.severity.value, lsp.DiagnosticSeverity.Information)
    return lsp.Diagnostic(
        _range(Span(line, column, column + max(length, 1))),
        message,
        severity,
        code=diagnostic.code,
        source="mlirhlo",
    )


def _range(span: Span) -> lsp.Range:
    return lsp.Range(lsp.Position(span.line, span.start), lsp.Position(span.line, span.end))


def make_server() -> Server:
    """A server with all its features."""
    server = Server()
    _add_texts(server)
    _add_names(server)
    _add_stages(server)
    _add_views(server)
    _add_actions(server)
    return server


def _add_texts(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.take(uri, params.text_document.text)
        server.check(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.take(uri, server.workspace.get_text_document(uri).source)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.documents.pop(params.text_document.uri, None)
        server.publish(params.text_document.uri, ())


def _add_names(server: Server) -> None:
    def at(params: Any) -> tuple[Document, int, int]:
        document = server.document(params.text_document.uri)
        return document, params.position.line, params.position.character

    def about(params: Any) -> Answers:
        return answers(server.document(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        text = about(params).hover(*at(params))
        if text is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        span = about(params).definition(*at(params))
        return None if span is None else lsp.Location(params.text_document.uri, _range(span))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        spans = about(params).references(*at(params))
        return [lsp.Location(params.text_document.uri, _range(span)) for span in spans]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        try:
            edits = about(params).rename(*at(params), params.new_name)
        except HloError as problem:
            raise JsonRpcInvalidParams(str(problem)) from None
        changes = [lsp.TextEdit(_range(span), text) for span, text in edits]
        return lsp.WorkspaceEdit({params.text_document.uri: changes})

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["%", "(", ",", "="])
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        found = about(params).completions(*at(params))
        items = [
            lsp.CompletionItem(c.label, kind=_KINDS[c.kind], detail=c.detail, sort_text=f"{k:06}")
            for k, c in enumerate(found)
        ]
        return lsp.CompletionList(is_incomplete=False, items=items)


def _add_stages(server: Server) -> None:
    def at(side: Side, params: Any) -> lsp.Location | None:
        document, position = server.document(params.text_document.uri), params.position
        stage = server.stages.beside(document.file, side)
        if stage is None:
            return None
        span = counterpart(document, position.line, position.character, stage, side)
        uri = from_fs_path(stage.path)
        return None if span is None or uri is None else lsp.Location(uri, _range(span))

    @server.feature(lsp.TEXT_DOCUMENT_DECLARATION)
    def declaration(params: lsp.DeclarationParams) -> lsp.Location | None:
        return at(Side.BEFORE, params)

    @server.feature(lsp.TEXT_DOCUMENT_IMPLEMENTATION)
    def implementation(params: lsp.ImplementationParams) -> lsp.Location | None:
        return at(Side.AFTER, params)

    @server.command("mlirhlo.show")
    async def show(uri: str) -> str:
        """Opens another file of the dump folder."""
        await server.show(uri)
        return uri


def _add_views(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = server.document(params.text_document.uri)
        return [lsp.FoldingRange(first, last) for first, last in answers(document).folds(document)]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        outline = answers(document).outline(document)
        return [_symbol(symbol, lsp.SymbolKind.Function) for symbol in outline]

    @server.feature(
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        lsp.SemanticTokensLegend(list(features.TOKEN_TYPES), []),
    )
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        document = server.document(params.text_document.uri)
        return lsp.SemanticTokens(answers(document).tokens(document))

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = server.document(params.text_document.uri)
        first, last = params.range.start.line, params.range.end.line
        shapes = answers(document).inlay_shapes(document, first, last)
        return [
            lsp.InlayHint(lsp.Position(line, column), shape, kind=lsp.InlayHintKind.Type)
            for line, column, shape in shapes
        ]


def _symbol(symbol: features.Symbol, kind: lsp.SymbolKind) -> lsp.DocumentSymbol:
    whole = lsp.Range(lsp.Position(symbol.first, 0), lsp.Position(symbol.last, 1))
    name = lsp.Range(lsp.Position(symbol.first, 0), lsp.Position(symbol.first, 1))
    children = [_symbol(child, lsp.SymbolKind.Variable) for child in symbol.children]
    return lsp.DocumentSymbol(symbol.name, kind, whole, name, symbol.detail, children=children)


def _add_actions(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction | lsp.Command]:
        uri = params.text_document.uri
        document = server.document(uri)
        found: list[lsp.CodeAction | lsp.Command] = []
        for diagnostic in document.diagnostics:
            sent = _diagnostic(diagnostic)
            if (
                sent.range.start.line > params.range.end.line
                or sent.range.start.line < params.range.start.line
            ):
                continue
            for mend in answers(document).mends(document, diagnostic):
                edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(_range(mend.span), mend.text)]})
                kind = lsp.CodeActionKind.QuickFix
                found.append(lsp.CodeAction(mend.title, kind, [sent], edit=edit))
        titles = ("run on the interpreter", "open the graph", "reduce the module")
        for title, command in zip(titles, COMMANDS, strict=True):
            found.append(lsp.Command(title, command, arguments=[uri]))
        for side in Side:
            stage = server.stages.beside(document.file, side)
            if stage is not None:
                title = f"open the stage {side.name.lower()}: {stage.title}"
                found.append(
                    lsp.Command(title, "mlirhlo.show", arguments=[from_fs_path(stage.path)])
                )
        return found

    @server.command("mlirhlo.run")
    def run(uri: str) -> str:
        """Results of the entry on made-up arguments."""
        return _guarded(server, lambda: _results(server.document(uri)))

    @server.command("mlirhlo.graph")
    async def graph(uri: str) -> str:
        """A page with the graph; its address."""
        address = _guarded(server, lambda: _graph(server.document(uri)))
        if address.startswith("file:"):
            await server.show(address, in_browser=True)
        return address

    @server.command("mlirhlo.reduce")
    async def reduce_module(uri: str) -> str:
        """Opens the smallest module with the first error, or for which the CPU is wrong; its address."""
        document = server.document(uri)
        loop = asyncio.get_running_loop()
        address = await loop.run_in_executor(
            None, _reduced, document.text, document.file, _condition(document)
        )
        if address.startswith("file:"):
            await server.show(address)
        else:
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, address))
        return address


def _condition(document: Document) -> Condition:
    """What a smaller module still has to show: the first error, or else other results on the CPU."""
    errors = [d.code for d in document.diagnostics if d.severity is Severity.ERROR]
    if errors:
        return Condition("diagnostic", code=errors[0])
    return Condition("differs", ("CPU", "Interpreter"))


def _reduced(text: str, name: str, condition: Condition) -> str:
    """The address of a file with the smallest module, or why there is none."""
    try:
        done = reduce.reduce(text, condition, name=name, limits=Limits(_REDUCE_SECONDS))
    except (HloError, ValueError) as problem:
        return f"{problem}\nhlo-reduce {name} has other conditions: --when, --bad"
    suffix = f".reduced{os.path.splitext(name)[1] or '.hlo'}"
    return _kept(done.text, suffix)


def _kept(text: str, suffix: str) -> str:
    """The address of a temporary file for an editor or a browser, which reads it later."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
        file.write(text)
    return from_fs_path(file.name) or file.name


def _guarded(server: Server, compute: Any) -> str:
    try:
        text: str = compute()
    except (HloError, ValueError, OSError) as problem:
        text = str(problem)
    server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, text[:2000]))
    return text


def _results(document: Document) -> str:
    module = load_module(document.text, document.file)
    arrays = sides.Side.parse("Interpreter").run(module, fake_arguments(module, 42))
    return "\n".join(f"{a.dtype}{list(a.shape)} {a.tolist()}" for a in arrays)


def _graph(document: Document) -> str:
    return _kept(render(load_module(document.text, document.file), "html"), ".html")


def serve() -> None:
    """Serves one editor on standard input and output, until it says goodbye."""
    make_server().start_io()
