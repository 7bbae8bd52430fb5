"""Readers and writers of every format; `load` and `write` are the door to all of them.

Nothing is imported before it is needed: the parts (`hlo_text`, `mlir`, `proto`, `containers`) stand
on their own, and this page only picks among them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypeAlias

from mlirhlo.diagnostics import Place, SourceText, error, wrong_type
from mlirhlo.formats.files import write_file
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.dialects.hlo import module as _module
    from mlirhlo.formats import bytecode as _formats_bytecode
    from mlirhlo.formats import containers as _containers
    from mlirhlo.formats import hlo_text as _hlo_text
    from mlirhlo.formats import jax_export as _jax_export
    from mlirhlo.formats import mlir as _mlir
    from mlirhlo.formats import proto as _proto
    from mlirhlo.formats import sniff as _sniff
    from mlirhlo.formats import stablehlo as _stablehlo
    from mlirhlo.formats import vhlo as _vhlo
    from mlirhlo.formats.proto import assignment as _assignment
    from mlirhlo.formats.proto import containers_pb2 as _containers_pb2
    from mlirhlo.formats.proto import literals as _literals
    from mlirhlo.formats.proto import message as _message


if TYPE_CHECKING:
    from google.protobuf.message import Message
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.literal import Literal
    from mlirhlo.formats.hlo_text import PrintOptions
    from mlirhlo.formats.proto.literal_pb2 import LiteralProto
    from mlirhlo.formats.sniff import Sniffed

__all__ = ["FORMATS", "Loaded", "Source", "load", "read_file", "to_bytes", "write", "write_file"]

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"
"""A path, the content itself, or an open binary file."""

FORMATS: Mapping[str, tuple[str, str | None]] = {
    "hlo": ("HLO_TEXT", None),
    "txt": ("HLO_TEXT", None),
    "text": ("HLO_TEXT", None),
    "mlir": ("MLIR_TEXT", None),
    "mlir-generic": ("MLIR_TEXT", None),
    "stablehlo": ("MLIR_TEXT", None),
    "mlirbc": ("MLIR_BYTECODE", None),
    "artifact": ("MLIR_BYTECODE", None),
    "pb": ("PROTO", None),
    "proto": ("PROTO", None),
    "proto_binary": ("PROTO", None),
    "pbtxt": ("PROTO_TEXT", None),
    "proto_text": ("PROTO_TEXT", None),
    "json": ("PROTO_JSON", None),
    "snapshot": ("PROTO", "SNAPSHOT"),
    "snapshot_proto_binary": ("PROTO", "SNAPSHOT"),
    "unoptimized_hlo_snapshot": ("PROTO", "UNOPTIMIZED_SNAPSHOT"),
    "unoptimized_snapshot_proto_binary": ("PROTO", "UNOPTIMIZED_SNAPSHOT"),
    "unoptimized_snapshot_proto_text": ("PROTO_TEXT", "UNOPTIMIZED_SNAPSHOT"),
}
"""Names that users of XLA's tools give to formats: our format and container."""

_BY_EXTENSION: Mapping[str, str] = {
    ".hlo": "hlo",
    ".txt": "hlo",
    ".mlir": "mlir",
    ".mlirbc": "mlirbc",
    ".pb": "pb",
    ".pbtxt": "pbtxt",
    ".json": "json",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module, and what its file was."""

    module: ModuleOp
    name: str
    """File name, `<stdin>` or the like."""
    sniffed: Sniffed
    """Format, gzip or not, and for protos the message."""
    source: SourceText | None = None
    """The text, for text formats."""
    message: Message | None = None
    """The message, for protos: an HloProto, HloSnapshot, …"""

    @property
    def arguments(self) -> tuple[tuple[Literal, ...], ...]:
        """Arguments stored in a snapshot, one tuple per partition; `()` where there are none.

        Raises `HloError` HLO0206 when a literal is damaged.
        """
        match self.message:
            case _containers_pb2.HloSnapshot() as snapshot if (
                snapshot.arguments or snapshot.HasField("result")
            ):
                return (self._decoded(snapshot.arguments),)
            case _containers_pb2.HloUnoptimizedSnapshot() as snapshot:
                return tuple(self._decoded(p.arguments) for p in snapshot.partitions)
            case _:
                return ()

    @property
    def result(self) -> Literal | None:
        """The result stored in a snapshot, a tuple literal for tuples. Raises as `arguments` does."""
        if isinstance(self.message, _containers_pb2.HloSnapshot) and self.message.HasField(
            "result"
        ):
            return self._decoded([self.message.result], "result")[0]
        return None

    def _decoded(
        self, protos: Iterable[LiteralProto], what: str = "argument"
    ) -> tuple[Literal, ...]:
        literals: list[Literal] = []
        for number, proto in enumerate(protos):
            try:
                literals.append(_literals.decode_literal(proto))
            except _message.DecodeProblem as problem:
                raise problem.at(self.name, f"{what} {number}") from None
        return tuple(literals)


def load(source: Source, format: str | None = None, *, name: str | None = None) -> Loaded:
    """The module in a file, whatever its format: told by content, unless `format` (a key of
    `FORMATS`) says so. Nothing is verified.

    Raises `HloError`: HLO0503 when the file cannot be read, HLO0502 for an unknown `format`, and
    what the readers raise.
    """
    data, own_name = read_file(source)
    name = name or own_name

    plain = _sniff.unwrap(data, name)
    is_gzip = plain is not data
    if format is None:
        sniffed = _sniff.sniff_plain(plain)
        sniffed = _sniff.Sniffed(sniffed.format, is_gzip, sniffed.container)
    else:
        sniffed = _forced(plain, is_gzip, format)
    match sniffed.format:
        case _sniff.Format.HLO_TEXT | _sniff.Format.MLIR_TEXT:
            # Bytes that are no UTF-8 stand in metadata strings of real dumps and must come out again.
            text = plain.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="surrogateescape")
            del data, plain  # a text may hold large constants: once is enough
            return _load_text(text, name, sniffed)
        case _sniff.Format.PROTO | _sniff.Format.PROTO_TEXT | _sniff.Format.PROTO_JSON:
            return _load_proto(plain, name, sniffed)
        case _sniff.Format.MLIR_BYTECODE | _sniff.Format.JAX_EXPORT:
            return _load_bytecode(plain, name, sniffed)
        case _sniff.Format.UNKNOWN:
            raise _unknown(plain, name)


def _load_text(text: str, name: str, sniffed: Sniffed) -> Loaded:
    if sniffed.format is _sniff.Format.HLO_TEXT:
        module = _hlo_text.parse_module(text, name)
    else:
        if _sniff.is_hlo_dialect(text):
            module = _mlir.parse_module(text, name)
        else:
            module = _stablehlo.parse_module(text, name)
    return Loaded(module, name, sniffed, SourceText(name, text))


def holds_hlo(module: ModuleOp) -> bool:
    """Whether a module is of the hlo dialect; those of StableHLO hold functions."""
    first = module.body.block.first_op if module.body.blocks else None
    if first is None:
        return any(name.startswith("hlo.") for name in module.attributes)
    return any(op.name == "hlo.computation" for op in module.body.block.ops)


def holds_kernels(module: ModuleOp) -> bool:
    """Whether a module holds structured kernels, which stand for instructions, not for a program."""
    first = module.body.block.first_op if module.body.blocks else None
    return first is not None and first.name == "structured.kernel"


def _load_bytecode(data: bytes, name: str, sniffed: Sniffed) -> Loaded:
    if sniffed.format is _sniff.Format.JAX_EXPORT:
        data = _jax_export.read_jax_export(data, name).module_bytes
    return Loaded(_vhlo.deserialize_artifact(data, name), name, sniffed)


def _load_proto(data: bytes, name: str, sniffed: Sniffed) -> Loaded:
    contents = _containers.read(data, name, sniffed)
    module = _proto.decode_module(contents.module, name, contents.config)
    _assignment.remember_assignment(module, contents.message)
    return Loaded(module, name, contents.sniffed, message=contents.message)


def _forced(data: bytes, is_gzip: bool, format: str) -> Sniffed:
    """What the user says the data are."""
    _check_format(format)
    format_name, container_name = FORMATS[format]
    kind = _sniff.Format[format_name]
    if kind not in (_sniff.Format.PROTO, _sniff.Format.PROTO_TEXT, _sniff.Format.PROTO_JSON):
        return _sniff.Sniffed(kind, is_gzip)
    looks = _sniff.sniff_plain(data)
    if looks.format is kind and looks.container is not None:
        # A snapshot where a module was promised, or one framed: the content knows better.
        return _sniff.Sniffed(kind, is_gzip, looks.container)
    return _sniff.Sniffed(kind, is_gzip, _sniff.Container[container_name or "HLO"])


def _unknown(data: bytes, name: str) -> Exception:
    if not data.strip():
        return error("HLO0200", "the file is empty", Place(name))
    if len(data) < 1000 and b"\0" not in data and os.path.isfile(data.strip()):
        shown = os.fsdecode(data.strip())
        raise error(
            "HLO0200",
            f"this is the name of a file, not its content: {shown}",
            Place(name),
            help="mlirhlo.load reads files; tools take the name as an argument",
        )
    first = data[:40].split(b"\n", 1)[0].decode("utf-8", errors="replace")
    shown = "".join(c if c.isprintable() else "·" for c in first)
    return error(
        "HLO0200",
        f"no format this package reads; the file begins with '{shown}'",
        Place(name),
        help="read are HLO text, MLIR, and XLA's protos (binary, text, JSON), plain or gzip;"
        " --format says which it is when the content does not",
    )


def read_file(source: Source) -> tuple[bytes, str]:
    """Content and name of a file. Raises `HloError` HLO0503 with the nearest name there is, and
    HLO0508 for what is no source."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<input>"
    if not isinstance(source, str | os.PathLike):
        data: object = source.read() if hasattr(source, "read") else source
        if not isinstance(data, bytes):
            advice = "open the file with mode 'rb'" if isinstance(data, str) else None
            raise wrong_type("load", "a path, bytes or an open binary file", source, advice)
        return data, str(getattr(source, "name", "<input>"))
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(), path
    except OSError as problem:
        raise error(
            "HLO0503",
            f"cannot read '{path}': {problem.strerror or problem}",
            help="mlirhlo.parse reads a text" if "\n" in path else _nearest_file(path),
        ) from None
    except ValueError as problem:  # a NUL in the name
        raise error("HLO0503", f"cannot read {path!r}: {problem}") from None


def _nearest_file(path: str) -> str | None:
    """What may have been meant by a path that cannot be read."""
    from difflib import get_close_matches

    if os.path.isdir(path):
        files = sorted(name for name in os.listdir(path) if name.endswith((".txt", ".hlo", ".pb")))
        return f"name a file in it, such as '{os.path.join(path, files[0])}'" if files else None
    if os.path.exists(path):
        return None
    folder, base = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f"there is no folder '{folder}'"
    near = get_close_matches(base, names, n=1)
    return f"did you mean '{os.path.join(folder, near[0])}'?" if near else None


# ---------------------------------------------------------------- writing


def _check_format(format: object) -> None:
    if not isinstance(format, str) or format not in FORMATS:
        raise error(
            "HLO0502", f"unknown format '{format}'", help=f"formats are {', '.join(FORMATS)}"
        )


def to_bytes(
    module: ModuleOp,
    format: str = "hlo",
    *,
    options: PrintOptions | None = None,
    container: str = "HloProto",
    gzip: bool = False,
) -> bytes:
    """A module in `format` (a key of `FORMATS`); protos wrapped in `container`.

    Raises `HloError`: HLO0502 for a format that is unknown or not written, and HLO0207 where the
    message cannot hold the module.
    """
    _check_format(format)
    format_name, container_name = FORMATS[format]
    kind = _sniff.Format[format_name]
    if kind not in (_sniff.Format.MLIR_TEXT, _sniff.Format.MLIR_BYTECODE) and not holds_hlo(module):
        raise error(
            "HLO0502",
            f"{'a kernel' if holds_kernels(module) else 'a StableHLO program'} is not written as '{format}'",
            help="convert it to HLO first (rewrites.stablehlo_to_hlo), or write it as 'mlir'",
        )
    if kind is _sniff.Format.HLO_TEXT:
        text = _hlo_text.print_module(module, options or _hlo_text.PrintOptions())
        data = text.encode("utf-8", errors="surrogateescape")
    elif kind is _sniff.Format.MLIR_TEXT:
        generic = format == "mlir-generic"
        if holds_hlo(module) or holds_kernels(module):
            text = _mlir.print_module(module, generic=generic)
        else:
            text = _stablehlo.print_module(module, generic=generic)
        data = text.encode("utf-8", errors="surrogateescape")
    elif kind is _sniff.Format.MLIR_BYTECODE:
        data = _bytecode(module, is_artifact=format == "artifact")
    else:
        inside = _sniff.Container[container_name] if container_name else _sniff.Container(container)
        config = None
        if inside is _sniff.Container.MODULE_WITH_CONFIG:
            config = _proto.config_of(_module.HloModule(module))
        message = _containers.wrap(_proto.encode_module(module), inside, config)
        _assignment.restore_assignment(module, message)
        return _containers.write(message, kind, gzip=gzip)
    if gzip:
        import gzip as gzip_module

        return gzip_module.compress(data, mtime=0)
    return data


def _bytecode(module: ModuleOp, *, is_artifact: bool) -> bytes:
    if is_artifact:
        return _vhlo.serialize_artifact(module)

    return _formats_bytecode.write_module(module)


def write(
    module: ModuleOp,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    options: PrintOptions | None = None,
    container: str = "HloProto",
) -> None:
    """Writes a module to a file, in the format its name ends in (`.hlo .txt .mlir .pb .pbtxt .json`,
    all with `.gz` or without) unless `format` says another.

    Raises `HloError`: HLO0503 when the file cannot be written, and as `to_bytes` does.
    """
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise wrong_type("save", "a path", path)
    path = os.fspath(path)
    is_gzip = path.endswith(".gz")
    extension = os.path.splitext(path.removesuffix(".gz"))[1]
    chosen = format or _BY_EXTENSION.get(extension, "hlo")
    data = to_bytes(module, chosen, options=options, container=container, gzip=is_gzip)
    write_file(path, data)
