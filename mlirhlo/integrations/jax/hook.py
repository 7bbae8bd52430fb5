"""What runs inside the real compiler: its module decoded, one of our passes, the result encoded.

The compiler hands over a serialised HloModuleProto and takes one back, or None for no change. It
ends the process on anything else, and believes the module it is given, so everything is checked
here: the pass's errors become one coded error, and a module that is wrong never reaches it.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirhlo import Module, load, parse
from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.importing import LATE
from mlirhlo.integrations.jax.buffers import check_buffers
from mlirhlo.integrations.optional import require

with LATE:
    from mlirhlo.formats import proto as formats_proto
    from mlirhlo.formats.proto import module_pb2
    from mlirhlo.rewrites import pipeline


if TYPE_CHECKING:
    import re

    from xdsl.passes import ModulePass

    from mlirhlo.formats.proto.module_pb2 import HloModuleProto

PassLike: TypeAlias = "str | ModulePass | type[ModulePass] | Callable[[Module], object]"
"""A pipeline (`"cse,dce"`), a pass, its class, or a function.

A function changes the module in place and returns None, or whether it changed it, or another
module (a `Module`, or HLO text).
"""


class PassWarning(UserWarning):
    """A pass failed inside the compiler and was left out."""


@dataclass(frozen=True, slots=True)
class PassRun:
    """One run of a pass inside the compiler."""

    module_name: str
    stage: str
    changed: bool
    seconds: float
    """Wall time, decoding and encoding included."""
    error: HloError | None = None
    """Why the pass was left out, or the compilation ended."""
    before_proto: bytes | None = field(default=None, repr=False)
    """The module as the compiler gave it; None unless the pass was registered with `keep`."""
    after_proto: bytes | None = field(default=None, repr=False)
    """The module as it went back; None without `keep`, and where nothing changed."""

    @property
    def before(self) -> Module | None:
        """The module as the compiler gave it."""
        return _loaded(self.before_proto)

    @property
    def after(self) -> Module | None:
        """The module as the compiler went on with it."""
        return _loaded(self.after_proto or self.before_proto)


def _loaded(proto: bytes | None) -> Module | None:
    return None if proto is None else load(proto, "pb")


@dataclass(slots=True)
class Hook:
    """A pass as the compiler calls it: `hook(stage)(serialised module)`."""

    name: str
    steps: tuple[Callable[[Module], object], ...]
    """Each changes a module, and returns what `PassLike` says of functions."""
    modules: re.Pattern[str] | None
    """Modules to run on, by name; None for all."""
    skips_errors: bool
    verifies: bool
    keeps: bool
    runs: list[PassRun] = field(default_factory=list[PassRun])
    is_active: bool = True
    """False once unregistered: some compilers cannot be told to forget a pass."""

    @property
    def ends_compilation(self) -> bool:
        """Whether an error of the pass is the compilation's."""
        return not self.skips_errors

    def __call__(self, data: bytes, stage: str) -> bytes | None:
        """The module to go on with; None for the one given. Raises `HloError` HLO0604, HLO0605."""
        if not self.is_active:
            return None
        module_name = name_of(data)
        if self.modules is not None and self.modules.search(module_name) is None:
            return None
        result: bytes | None = None
        problem: HloError | None = None
        # Leaving by Ctrl-C or sys.exit() ends the compilation, whatever on_error says.
        may_go_on = True
        start = time.perf_counter()
        try:
            # The compiler would wait for itself if the pass compiled something by JAX.
            with require("jax", "jax", "register_pass").no_tracing():
                result = self._run(data)
        except BaseException as raised:  # noqa: BLE001 - whatever a user's pass raises
            problem = self._failed(module_name, stage, raised)
            may_go_on = isinstance(raised, Exception)
        seconds = time.perf_counter() - start
        kept = (data, result) if self.keeps else (None, None)
        self.runs.append(PassRun(module_name, stage, result is not None, seconds, problem, *kept))
        if problem is None:
            return result
        if not (self.skips_errors and may_go_on):
            raise problem
        warnings.warn(f"left out: {problem}", PassWarning, stacklevel=2)
        return None

    def _run(self, data: bytes) -> bytes | None:
        module = given = load(data, "pb")
        changed: bool | None = False
        for step in self.steps:
            module, did = _after(module, step(module))
            changed = True if did or changed else None if did is None else changed
        if changed is False:
            return None
        proto = formats_proto.encode_module(module.op, keep_config=False)
        if changed is None and proto == _message(data):
            return None
        if self.verifies:
            untouched = load(data, "pb") if module is given else given
            _check(untouched, module)
        return proto.SerializeToString()

    def _failed(self, module_name: str, stage: str, raised: BaseException) -> HloError:
        """The error of a pass as one that says where it ran."""
        where = f"pass {self.name!r} on module {module_name!r} at stage {stage}"
        if isinstance(raised, HloError):
            first, *others = raised.diagnostics
            if first.code in ("HLO0604", "HLO0605"):
                mends = f"{first.help}; or {_HELP}" if first.help else _HELP
                ours = replace(first, message=f"{where}: {first.message}", help=mends)
            else:
                ours = Diagnostic("HLO0604", f"{where}: {first}", help=_HELP)
            return HloError(ours, *others)
        place = _place_of(raised)
        said = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
        mend = _NO_JAX if "no_tracing" in said else _HELP
        failed = error("HLO0604", f"{where}{place} raised {said}", help=mend)
        failed.__cause__ = raised
        return failed


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_HELP = "register the pass with on_error='skip' to compile without it"


_NO_JAX = "a pass runs inside the compiler and cannot compile by JAX; compute with numpy"


def _place_of(raised: BaseException) -> str:
    """File and line of the innermost frame that is neither ours nor an installed package's."""
    trace, place = raised.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and "site-packages" not in file:
            place = f" ({file}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _message(data: bytes) -> HloModuleProto:
    return module_pb2.HloModuleProto.FromString(data)


def name_of(data: bytes) -> str:
    """Name of a serialised HloModuleProto, its first field, without parsing the rest."""
    if data[:1] == b"\x0a":
        size = shift = 0
        for position, byte in enumerate(data[1:11], 2):
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return data[position : position + size].decode("utf-8", "replace")
    return _message(data).name


def _after(module: Module, returned: object) -> tuple[Module, bool | None]:
    """The module after a step, and whether it changed; None when nobody said."""
    if returned is None or isinstance(returned, bool):
        return module, returned
    if isinstance(returned, Module):
        return returned, None
    if isinstance(returned, str):
        return parse(returned), None
    raise error(
        "HLO0604",
        f"it returned a value of type {type(returned).__name__}",
        help="return None or a bool after a change in place, or a Module, or HLO text",
    )


def _check(before: Module, after: Module) -> None:
    """Raises `HloError` HLO0605 for what the pass broke."""
    problems = after.problems()
    if problems:
        # The compiler's own modules may hold what our verifier does not know.
        known = {problem.message for problem in before.problems()}
        new = [problem for problem in problems if problem.message not in known]
        if new:
            first = new[0]
            raise HloError(Diagnostic("HLO0605", f"it left a wrong module: {first}"), *new[1:5])
    was, now = before.hlo.entry_signature, after.hlo.entry_signature
    if was != now:
        raise error("HLO0605", f"the program's signature changed from {was} to {now}")
    if before.hlo.is_scheduled and not after.hlo.is_scheduled:
        raise error("HLO0605", "the module had a schedule and has none any more")
    check_buffers(before, after)


def steps_of(passes: PassLike | Sequence[PassLike]) -> tuple[Callable[[Module], object], ...]:
    """Passes as functions on modules.

    Raises `HloError`: HLO0400 to HLO0402 for a pipeline that cannot be read, HLO0601 for what is no
    pass.
    """
    from xdsl.passes import ModulePass

    if isinstance(passes, str):
        return tuple(map(_step, pipeline.parse_pipeline(passes)))
    if isinstance(passes, Sequence):
        return tuple(step for one in cast("Sequence[PassLike]", passes) for step in steps_of(one))
    made: object = passes() if isinstance(passes, type) else passes
    if isinstance(made, ModulePass):
        return (_step(made),)
    if callable(made):
        return (made,)
    raise error(
        "HLO0601",
        f"a value of type {type(passes).__name__} is no pass",
        help="give a pipeline such as 'cse,dce', a pass object or class, or a function of a module",
    )


def _step(pass_: ModulePass) -> Callable[[Module], bool]:
    def step(module: Module) -> bool:
        return pipeline.run_pipeline(module.op, [pass_]).changed

    return step


def title_of(passes: Any) -> str:
    """A name for passes that were given none."""
    if isinstance(passes, str):
        return passes
    name = getattr(passes, "name", None) or getattr(passes, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(passes, Sequence):
        return ",".join(map(title_of, passes))  # pyright: ignore[reportUnknownArgumentType]
    return type(passes).__name__
