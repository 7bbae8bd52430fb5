"""Snapshots of executions: HloSnapshot and HloUnoptimizedSnapshot files.

Source: dumps reference, "Snapshots".
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import sink
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import Shape, leaves
from mlirhlo.formats.proto import encode_module
from mlirhlo.formats.proto.containers_pb2 import HloSnapshot, HloUnoptimizedSnapshot
from mlirhlo.formats.proto.files.framed import write_framed
from mlirhlo.formats.proto.literal_pb2 import LiteralProto
from mlirhlo.formats.proto.literals import encode_literal
from mlirhlo.interp.values import literal_of_value, value_from

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.writer import ModuleDump
    from mlirhlo.formats.proto.module_pb2 import HloModuleProto

_launches = itertools.count(secrets.randbits(32) - (1 << 31))
"""Launch ids: signed numbers of 32 bits, one more for every launch of the process."""


class Executions:
    """What the runs of one compiled module leave behind."""

    def __init__(self, dump: ModuleDump, target: str) -> None:
        self.dump, self.target = dump, target
        self.unoptimized: HloModuleProto | None = None
        self.optimized: HloModuleProto | None = None
        self.parameters: Sequence[Shape] = ()
        self.result: Shape | None = None
        self._count = itertools.count()
        self._lock = threading.Lock()

    def given(self, module: ModuleOp) -> None:
        """The module as it came."""
        view = HloModule(module)
        self.parameters = [parameter.shape for parameter in view.entry.parameters]
        self.result = view.entry.root.shape
        if self.dump.settings.unoptimized_snapshots:
            self.unoptimized = self._proto(module)

    def compiled(self, module: ModuleOp) -> None:
        """The module that runs."""
        if self.dump.settings.snapshots and self.dump.wants_files:
            self.optimized = self._proto(module)

    @property
    def is_wanted(self) -> bool:
        """Whether runs leave anything behind."""
        return self.unoptimized is not None or self.optimized is not None

    def _proto(self, module: ModuleOp) -> HloModuleProto | None:
        found: list[HloModuleProto] = []

        def make() -> bytes:
            found.append(encode_module(module, keep_config=False))
            return b""

        sink.attempt("a snapshot's module", make)
        if found:
            found[0].id = self.dump.number
        return found[0] if found else None

    # -------------------------------------------------------------- runs

    def starting(self, per_partition: Sequence[Sequence[object]]) -> Callable[[object], None]:
        """An execution on arguments of every partition; what is returned takes the first's result.

        Arguments are read at once, since the run may overwrite them.
        """
        with self._lock:
            number = next(self._count)
        literals: list[list[LiteralProto]] = []

        def read() -> bytes:
            literals.extend(map(self._literals, per_partition))
            return b""

        if sink.attempt("a snapshot's arguments", read) is None:
            return lambda result: None
        if self.unoptimized is not None:
            self._write_unoptimized(literals, number)
        return lambda result: self._write(literals[0], result, number)

    def _literals(self, arguments: Sequence[object]) -> list[LiteralProto]:
        """Messages of arguments: one for each parameter, or one for each leaf."""
        shapes = self.parameters
        if len(arguments) != len(shapes):
            shapes = [leaf for shape in shapes for _, leaf in leaves(shape)]
        return [
            self._literal(argument, shape, f"argument {number}")
            for number, (argument, shape) in enumerate(zip(arguments, shapes, strict=True))
        ]

    @staticmethod
    def _literal(given: object, shape: Shape, what: str) -> LiteralProto:
        literal = literal_of_value(value_from(given, shape, what), shape)
        return LiteralProto() if literal is None else encode_literal(literal)

    def _write(self, arguments: Sequence[LiteralProto], result: object, number: int) -> None:
        if self.optimized is None:
            return

        def make() -> bytes:
            snapshot: HloSnapshot = HloSnapshot()
            assert self.optimized is not None
            assert self.result is not None
            snapshot.hlo.hlo_module.CopyFrom(self.optimized)
            snapshot.arguments.extend(arguments)
            snapshot.result.CopyFrom(self._literal(result, self.result, "the result"))
            return snapshot.SerializeToString(deterministic=True)

        dump = self.dump
        if self.target == "cpu":
            launch = (next(_launches) + (1 << 31)) % (1 << 32) - (1 << 31)
            name = f"{dump.stem(f'snapshot.{launch}')}.pb"
        else:
            stem = dump.stem(f"execution_{number:04d}", prefix=dump.first_dump)
            name = f"{stem}.hlo_snapshot.pb"
        dump.write(name, make, is_text=False)

    def _write_unoptimized(self, partitions: Sequence[Sequence[LiteralProto]], number: int) -> None:
        dump = self.dump
        as_text = dump.options.xla_dump_hlo_as_text
        framed = dump.options.xla_dump_hlo_as_proto and not as_text

        def make() -> bytes | str:
            from google.protobuf import text_format

            snapshot = self._unoptimized(partitions)
            if as_text:
                return text_format.MessageToString(snapshot)
            return (
                write_framed(snapshot) if framed else snapshot.SerializeToString(deterministic=True)
            )

        ending = "txt" if as_text else "pb"
        stem = dump.stem(f"execution_{number:04d}.hlo_unoptimized_snapshot")
        dump.write(f"{stem}.{ending}", make, is_text=False)

    def _unoptimized(self, partitions: Sequence[Sequence[LiteralProto]]) -> HloUnoptimizedSnapshot:
        snapshot = HloUnoptimizedSnapshot()
        assert self.unoptimized is not None
        snapshot.hlo_module.CopyFrom(self.unoptimized)
        for arguments in partitions:
            snapshot.partitions.add().arguments.extend(arguments)
        return snapshot
