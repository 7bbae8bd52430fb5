"""mlirhlo: read, check, run, compile and transform XLA's HLO, in Python, on xDSL.

    >>> module = mlirhlo.parse("f32[2] add(f32[2] x, f32[2] y)")
    >>> module([1, 2], [3, 4])
    array([4., 6.], dtype=float32)

Importing this module starts nothing: every function imports what it needs when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from mlirhlo.importing import ALONE, LATE

with LATE:
    from mlirhlo import diagnostics as _diagnostics
    from mlirhlo import formats as _formats
    from mlirhlo.analysis import verifier as _verifier
    from mlirhlo.debug import dump as _dump
    from mlirhlo.debug import replay as _replay
    from mlirhlo.dialects.hlo import module as _hlo_module
    from mlirhlo.formats import hlo_text as _hlo_text
    from mlirhlo.interp import custom_calls as _custom_calls
    from mlirhlo.interp import device_counts as _device_counts
    from mlirhlo.interp import engine as _engine
    from mlirhlo.interp import values as _values
    from mlirhlo.rewrites import hlo_to_stablehlo as _hlo_to_stablehlo
    from mlirhlo.rewrites import pipeline as _pipeline
    from mlirhlo.rewrites import stablehlo_refine_shapes as _stablehlo_refine_shapes
    from mlirhlo.rewrites import stablehlo_to_hlo as _stablehlo_to_hlo
    from mlirhlo.runtime import compiler as _compiler
    from mlirhlo.runtime import partition as _partition
    from mlirhlo.runtime import sharded as _sharded


if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.diagnostics import Diagnostic
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.formats import Loaded, Source
    from mlirhlo.formats.hlo_text import PrintOptions
    from mlirhlo.interp.engine import Hook
    from mlirhlo.interp.registry import Meaning
    from mlirhlo.runtime.executable import Executable
    from mlirhlo.runtime.partition import ClusteredExecutable
    from mlirhlo.runtime.sharded import ShardedExecutable

__version__ = "0.1.0"

__all__ = [
    "Module",
    "__version__",
    "compile",
    "jit",
    "load",
    "opt",
    "parse",
    "register_custom_call",
    "run",
]


class Module:
    """An HLO module: callable, printable, and open to passes.

    Made by `load` and `parse`, or around any `builtin.module` of the hlo dialect. Raises `HloError`
    HLO0508 for anything else.
    """

    __slots__ = ("_made", "loaded", "op")

    op: ModuleOp
    """The IR."""
    loaded: Loaded | None
    """The file it came from, with the arguments of a snapshot; None for other modules."""

    def __init__(self, op: ModuleOp, loaded: Loaded | None = None) -> None:
        from xdsl.dialects.builtin import ModuleOp

        if not isinstance(op, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _wrong_type(
                "a module",
                "a builtin.module",
                op,
                "mlirhlo.load reads a file, mlirhlo.parse a text",
            )
        self.op, self.loaded = op, loaded
        self._made: dict[object, ModuleOp] = {}

    @property
    def stablehlo(self) -> ModuleOp | None:
        """The StableHLO program the module was made of, as it was read; None for other modules."""
        loaded = None if self.loaded is None else self.loaded.module
        return loaded if loaded is not self.op or self._is_open else None

    @property
    def _is_open(self) -> bool:
        """Whether `op` is StableHLO of unknown sizes, made HLO for the arguments of each call."""
        return any(op.name == "func.func" for op in self.op.ops)

    def _for(self, arguments: Sequence[object]) -> ModuleOp:
        """The HLO for these arguments. Raises `HloError` HLO0428, HLO0429 and HLO042x."""
        if not self._is_open:
            return self.op
        import numpy as np

        shapes = tuple(np.shape(cast(Any, argument)) for argument in arguments)
        found = self._made.get(shapes)
        if found is None:
            found = _stablehlo_to_hlo.convert_to_hlo(
                _stablehlo_refine_shapes.refine_for(self.op, shapes), with_device_counts=True
            )
            self._made[shapes] = found
        return found

    @property
    def static_op(self) -> ModuleOp:
        """The IR as HLO of known sizes. Raises `HloError` HLO0435 for a program that is made HLO
        only when it is called."""
        if self._is_open:
            raise _diagnostics.error(
                "HLO0435",
                "the sizes of the program's arguments are unknown before it is called",
                help="the pass stablehlo-refine-arguments gives them sizes",
            )
        return self.op

    @property
    def hlo(self) -> HloModule:
        """The IR as HLO: header attributes, computations, instructions."""
        return _hlo_module.HloModule(self.op)

    @property
    def name(self) -> str:
        """Name of the module."""
        return self.hlo.name

    def as_text(self, format: str = "hlo", options: PrintOptions | None = None) -> str:
        """The module as text: `hlo`, `stablehlo`, `mlir`, `mlir-generic`, `pbtxt` or `json`.

        HLO text is XLA's long form with large constants in full, unless `options` says otherwise.
        `stablehlo` is the program that computes the same, also of optimised modules. Raises
        `HloError` HLO0502 for an unknown format, HLO0427 for what StableHLO has no type for.
        """
        if options is None and str(format) in ("hlo", "txt", "text"):
            options = _hlo_text.PrintOptions(large_constants=True)
        op = self._in(format)
        return _formats.to_bytes(op, format, options=options).decode("utf-8", "surrogateescape")

    def _in(self, format: str | None) -> ModuleOp:
        """The IR in the dialect that a format holds."""
        if format not in ("stablehlo", "artifact") or self._is_open:
            return self.op

        return _hlo_to_stablehlo.convert_to_stablehlo(self.op)

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        count = sum(1 for _ in self.hlo.instructions)
        return f"<mlirhlo.Module {self.name!r}: {count} instructions>"

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes the module to a file, in the format its name ends in (`.hlo .txt .mlir .pb .pbtxt
        .json`, and `.gz` after them). Raises `HloError` HLO0503."""
        op = self._in(format)
        _formats.write(op, path, format, options=_hlo_text.PrintOptions(large_constants=True))

    def problems(self) -> list[Diagnostic]:
        """What is wrong with the module; empty when it is valid."""
        return _verifier.verify_module(self.op)

    def verify(self) -> None:
        """Raises `HloError` with all `problems` when there are any."""
        problems = self.problems()
        if problems:
            raise _diagnostics.HloError(*problems)

    def opt(self, passes: str) -> Module:
        """Runs passes (`"cse,dce"`) on the module, in place, and returns it.

        Raises `HloError` HLO0400 to HLO0402 for a pipeline that cannot be read.
        """
        _pipeline.run_pipeline(self.op, _pipeline.parse_pipeline(passes))
        return self

    def __call__(self, *arguments: object) -> Any:
        """The module's result on one device: a numpy array of its own, or a tuple of them.

        `arguments`: one for each parameter (or each leaf of tuples): numpy, anything with DLPack
        (`jax.Array`, `torch.Tensor`, …), Python numbers and lists. Without any, those of the
        snapshot. Raises `HloError` HLO03xx.
        """
        if not arguments and self.arguments:
            arguments = self.arguments[0]
        return self.run(*arguments)

    def run(
        self, *arguments: object, replica: int = 0, partition: int = 0, hook: Hook | None = None
    ) -> Any:
        """As a call, with the device's numbers and a hook told of every instruction."""
        if hook is not None and not callable(hook):
            raise _wrong_type("hook", "a function", hook)
        result = _engine.Interpreter(self._for(arguments), hook=hook).run(
            arguments, replica=replica, partition=partition
        )
        return _values.for_user(result)

    def on_devices(
        self, *per_device: Sequence[object], replicas: int = 0, partitions: int = 0
    ) -> list[Any]:
        """Results on all simulated devices, replicas major, each as a call gives it.

        `per_device`: the arguments of each device; one list stands for all. Numbers of devices that
        are 0 are those that the module needs: its header's, or those of its manual computations and
        collectives. Raises `HloError` HLO0353 when the numbers do not agree.
        """
        for one in per_device:
            if not isinstance(one, list | tuple):
                raise _wrong_type("on_devices", "lists of arguments, one for each device", one)
        for number in (replicas, partitions):
            if not isinstance(number, int) or number < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise _wrong_type("replicas and partitions", "numbers of devices", number)
        counts = _device_counts.device_counts(self.hlo)
        replicas = replicas or counts.replicas
        partitions = partitions or counts.partitions
        results = _replay.run(self.op, _replay.Inputs(per_device, replicas, partitions))
        return list(cast("tuple[Any, ...]", _values.for_user(tuple(results))))

    @property
    def arguments(self) -> tuple[tuple[Any, ...], ...]:
        """The inputs stored in a snapshot, per partition: numpy arrays, tuples of them."""
        if self.loaded is None:
            return ()

        return tuple(tuple(map(_values.value_of_literal, one)) for one in self.loaded.arguments)

    @property
    def expected(self) -> Any:
        """The result stored in a snapshot; None where there is none."""
        stored = None if self.loaded is None else self.loaded.result
        if stored is None or stored.is_elided:
            return None

        return _values.value_of_literal(stored)


def _wrong_type(what: str, wanted: str, given: object, help: str | None = None) -> Exception:
    return _diagnostics.wrong_type(what, wanted, given, help)


def load(source: Source, format: str | None = None) -> Module:
    """The module in a file (or bytes, or an open binary file), whatever its format.

    A StableHLO program (text, bytecode, `jax.export`) is converted to HLO; `Module.stablehlo` has it
    as it was. One whose arguments have unknown sizes is converted when it is called, for the shapes
    given. Raises `HloError` when it cannot be read or converted; nothing is verified.
    """
    return _module(_formats.load(source, format))


def parse(text: str, format: str | None = None) -> Module:
    """The module that a text spells: HLO, MLIR, StableHLO, protobuf text or JSON.

    StableHLO is converted, as `load` does. Raises `HloError`.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_type("parse", "a string", text, "mlirhlo.load reads bytes and files")
    return _module(_formats.load(text.encode("utf-8", "surrogateescape"), format, name="<string>"))


def _module(loaded: Loaded) -> Module:
    """What was read, as HLO."""
    module = loaded.module
    if any(op.name == "func.func" for op in module.ops):
        if not _stablehlo_refine_shapes.takes_any_size(module):
            module = _stablehlo_to_hlo.convert_to_hlo(module, with_device_counts=True)
    return Module(module, loaded)


def opt(module: Module | ModuleOp, passes: str) -> Module:
    """Runs passes on a module, in place, and returns it; see `Module.opt`."""
    return (module if isinstance(module, Module) else Module(module)).opt(passes)


def run(module: Module | Source, *arguments: object) -> Any:
    """The result of a module, or of the module in a file; see `Module.__call__`."""
    return (module if isinstance(module, Module) else load(module))(*arguments)


@overload
def compile(  # noqa: A001
    module: Module | Source,
    platform: str = "cpu",
    *,
    level: int = 2,
    cached: bool = True,
    debug: bool = False,
    options: Mapping[str, object] | None = None,
    gpu: str = "",
) -> Executable: ...
@overload
def compile(  # noqa: A001
    module: Module | Source,
    platform: str = "cpu",
    *,
    level: int = 2,
    cached: bool = True,
    debug: bool = False,
    options: Mapping[str, object] | None = None,
    clusters: bool,
) -> Executable | ClusteredExecutable: ...
@overload
def compile(  # noqa: A001
    module: Module | Source,
    platform: str = "cpu",
    *,
    level: int = 2,
    cached: bool = True,
    debug: bool = False,
    options: Mapping[str, object] | None = None,
    gpu: str = "",
    devices: int,
) -> ShardedExecutable: ...
def compile(  # noqa: A001  # numba's, torch's and re's word for it
    module: Module | Source,
    platform: str = "cpu",
    *,
    level: int = 2,
    cached: bool = True,
    debug: bool = False,
    options: Mapping[str, object] | None = None,
    gpu: str = "",
    devices: int | None = None,
    clusters: bool = False,
) -> Executable | ShardedExecutable | ClusteredExecutable:
    """The module as machine code for this machine, called as the module is.

    With `devices` it runs on so many devices of this process, each on a thread of its own: a sharded module is
    partitioned, and takes and gives whole arrays.

    With `clusters`, custom calls without machine code run between calls of the code around them, instead of
    being called back in the middle of it (`ClusteredExecutable.parts`).

    With `platform="gpu"` it is PTX for the device that `gpu` names (`h100`, `sm_80`; H100 where it is empty),
    and runs on the simulator, which reports what kernels do wrong.

    Code comes from the cache on disk when it is there (`MLIRHLO_CACHE_DIR`), unless `cached` is
    False; `level` is LLVM's effort, 0 to 3. With `debug`, every access of memory is checked, and
    whether results depend on memory that was never written: runs are slow then and raise HLO0439 and
    HLO0440. `options` are XLA's debug options, which go over the flags of
    the environment (`{"xla_dump_to": "dumps"}`). The interpreter never steps in: raises `HloError` HLO0432
    and HLO0435 for what has no code, HLO0353 for another number of devices, HLO0437 for an unknown platform,
    HLO0524 for options that do not fit, HLO0520 and HLO0521 for flags that do not, HLO0508 for arguments of
    other types, and the verifier's for a module whose faults are in the way.
    """
    if not isinstance(level, int) or not 0 <= level <= 3:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_type("level", "a number from 0 to 3", level)
    if options is not None and not hasattr(options, "items"):
        raise _wrong_type("options", "a dict of XLA's flags", options)
    if devices is not None and (not isinstance(devices, int) or devices < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_type("devices", "a number of devices", devices)
    if clusters and devices is not None:
        raise _wrong_type("devices", "left out with clusters", devices)
    made = module if isinstance(module, Module) else load(module)
    flags, program = _dump.flags_for(options), made.stablehlo

    def compile_one(op: ModuleOp) -> Executable:
        return _compiler.compile_module(
            op,
            platform,
            level=level,
            cached=cached,
            debug=debug,
            flags=flags,
            program=program,
            gpu=gpu,
        )

    try:
        if clusters:
            return _partition.compile_clusters(made.static_op, compile_one)
        if devices is None:
            return compile_one(made.static_op)
        return _sharded.compile_sharded(made.static_op, devices, compile_one)
    except _diagnostics.HloError:
        raise
    except Exception as found:
        # Modules are not verified before they are compiled.
        if problems := Module(made.static_op).problems():
            raise _diagnostics.HloError(*problems) from found
        raise


def register_custom_call(target: str, function: Meaning) -> None:
    """Gives custom calls of `target` a meaning: `function(op, inputs, frame)` returns the result.

    `inputs` are numpy arrays in logical order, tuples of them for tuples; the result has to fit
    `op.shape`. A second registration replaces the first. Raises `HloError` HLO0508 for other types.
    """
    if not isinstance(target, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_type("target", "the name of custom calls", target)
    if not callable(function):
        raise _wrong_type("function", "a function of (op, inputs, frame)", function)
    _custom_calls.register_custom_call(target, function)


def jit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """The function on arrays, compiled once for each combination of shapes and types.

    Written with `mlirhlo.numpy`, the Python array API standard. Options: `static_argnums`,
    `static_argnames`, `donate_argnums`, `platform`; see `mlirhlo.numpy.jit.jit`. Also a decorator.
    Raises `HloError` HLO062x for what cannot compile.
    """
    with ALONE:
        from mlirhlo.numpy.jit import jit as make

    return make(function, **options)
