"""Bundles: a model exported as StableHLO with its weights, in a folder or in memory.

A folder has `functions/NAME.meta` (JSON), `functions/NAME.bytecode` (a StableHLO artifact),
`functions/NAME.mlir` (the same as text, for reading), `data/WEIGHT` and `constants/NUMBER` (numpy
files without extension). Source: the folders that torch_xla 2.9 writes (`save_as_stablehlo`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.diagnostics import Place, error
from mlirhlo.integrations.ir import executor_of, module_of
from mlirhlo.integrations.optional import choose
from mlirhlo.integrations.torch.trees import Tree, read_tree
from mlirhlo.runtime.programs import CPU, platform_named

if TYPE_CHECKING:
    from mlirhlo import Module


@dataclass(frozen=True, slots=True)
class Signature:
    """One parameter or result of a method."""

    shape: tuple[int, ...]
    dtype: str
    dynamic_dims: tuple[int, ...] = ()
    """Dimensions whose size was not fixed when the model was exported."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a parameter of the program comes from."""

    kind: str
    """`input_arg`, `parameter` (a weight) or `constant`."""
    position: int = -1
    """Number of the argument or constant."""
    name: str = ""
    """Name of the weight."""


@dataclass(eq=False, repr=False)
class Method:
    """One function of a bundle."""

    name: str
    program: bytes
    """StableHLO as an artifact or as text."""
    parameters: tuple[Signature, ...]
    results: tuple[Signature, ...]
    locations: tuple[Location, ...]
    """One for each parameter."""
    inputs: Tree | None
    """Structure of `(args, kwargs)`; None when arguments are flat."""
    outputs: Tree | None
    weights: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constants: Sequence[Any] = ()
    platform: str = CPU
    options: Mapping[str, object] | None = None
    """XLA's."""

    @cached_property
    def module(self) -> Module:
        """The program as a module of the hlo dialect; weights and constants are parameters."""
        return module_of(self.program)

    @cached_property
    def _executor(self) -> Callable[[Sequence[Any]], Any]:
        return executor_of(self.module, self.platform, self.options, self.name)

    def arguments(self, *args: object, **kwargs: object) -> list[Any]:
        """What the module's parameters are for these arguments.

        Raises `HloError` HLO0603 for arguments of another structure, HLO0608 for missing weights.
        """
        if self.inputs is None:
            flat: list[Any] = [*args, *kwargs.values()]
        else:
            flat = list(self.inputs.flatten((args, kwargs), "the pair of args and kwargs"))
        return [self._at(location, flat) for location in self.locations]

    def _at(self, location: Location, flat: Sequence[Any]) -> Any:
        source: Mapping[Any, Any] | Sequence[Any]
        key: Any = location.position
        if location.kind == "parameter":
            source, key = self.weights, location.name
        elif location.kind == "constant":
            source = self.constants
        else:
            source = flat
        try:
            value = source[key]
        except (KeyError, IndexError):
            if location.kind == "input_arg":
                raise error(
                    "HLO0603", f"{self.name} takes more arguments than the {len(flat)} given"
                ) from None
            raise error(
                "HLO0608",
                f"{self.name}: {location.kind} {key!r} is not in the bundle",
                help="give its value by bundle.weights[…] = …"
                if location.kind == "parameter"
                else None,
            ) from None
        return value.detach().cpu().numpy() if hasattr(value, "detach") else value

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, structured as the model returns it; arrays of numpy.

        Raises `HloError` HLO0603, HLO0608 and HLO03xx, and HLO0432 and HLO0435 for what has no machine
        code.
        """
        import numpy as np

        result = self._executor(self.arguments(*args, **kwargs))
        several = cast("Sequence[Any]", result if isinstance(result, tuple) else (result,))
        parts = [np.asarray(part) for part in several]
        if self.outputs is None or self.outputs.leaves != len(parts):
            return parts[0] if len(parts) == 1 else tuple(parts)
        return self.outputs.unflatten(iter(parts))

    def __repr__(self) -> str:
        return f"<mlirhlo.torch.Method {self.name!r}: {len(self.locations)} parameters>"


@dataclass(eq=False, repr=False)
class Bundle:
    """A model: methods over shared weights. A call is a call of `forward`."""

    methods: Mapping[str, Method]
    weights: dict[str, Any]
    """By name, as the model's `state_dict` names them; may be changed."""

    def method(self, name: str = "forward") -> Method:
        """A method by name. Raises `HloError` HLO0601."""
        return self.methods[choose("method", name, self.methods)]

    @property
    def module(self) -> Module:
        """The program of `forward`, or of the only method."""
        return self._default.module

    @property
    def _default(self) -> Method:
        return next(iter(self.methods.values())) if len(self.methods) == 1 else self.method()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """What the model returns for these arguments; see `Method`."""
        return self._default(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<mlirhlo.torch.Bundle: {', '.join(self.methods)}; {len(self.weights)} weights>"


def load(
    folder: str | os.PathLike[str],
    *,
    platform: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Bundle:
    """The model in a folder. Needs no PyTorch.

    `platform`: `"cpu"` for machine code (the default, unless `JAX_PLATFORM_NAME` says otherwise),
    `"interpreter"`, or `"XLA"` where JAX is installed. `options`: XLA's debug options
    (`{"xla_dump_to": "dumps"}`), which go over the flags of the environment.

    Raises `HloError` HLO0608 for a folder that is no bundle, HLO0601 for an unknown platform; programs are
    read when first used.
    """
    platform = platform_named(platform)
    root = Path(folder)
    functions = root / "functions"
    if not functions.is_dir():
        raise error(
            "HLO0608",
            f"'{root}' is no bundle: it has no folder 'functions'",
            help="write one by torch_xla.stablehlo.save_as_stablehlo(exported, folder)",
        )
    weights = {path.name: _array(path) for path in _files(root / "data")}
    numbered = {path.name: _array(path) for path in _files(root / "constants")}
    try:
        constants = [numbered[name] for name in sorted(numbered, key=int)]
    except ValueError:
        raise error("HLO0608", f"'{root / 'constants'}': the files are numbers") from None
    metas = [path for path in _files(functions) if path.suffix == ".meta"]
    if not metas:
        raise error("HLO0608", f"'{functions}' holds no method: there is no '.meta' file")
    methods = [_method(path, weights, constants) for path in metas]
    return bundle_of(methods, weights, platform, options)


def bundle_of(
    methods: Sequence[Method],
    weights: dict[str, Any],
    platform: str,
    options: Mapping[str, object] | None,
) -> Bundle:
    """The bundle of these methods, which run on a platform."""
    on_platform = [replace(m, platform=platform, options=options) for m in methods]
    return Bundle({method.name: method for method in on_platform}, weights)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def _array(path: Path) -> Any:
    import numpy as np

    try:
        # Never unpickled: a bundle may come from anywhere.
        with path.open("rb") as file:
            return np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as problem:
        raise error("HLO0608", f"{path}: no numpy file: {problem}") from None


def _method(path: Path, weights: dict[str, Any], constants: Sequence[Any]) -> Method:
    try:
        meta: Any = json.loads(path.read_text())
    except (ValueError, OSError) as problem:
        raise error("HLO0608", f"cannot be read: {problem}", Place(str(path))) from None
    for suffix in (".bytecode", ".mlir"):
        program = path.with_suffix(suffix)
        if program.is_file():
            return method_of(meta, program.read_bytes(), weights, constants, str(path))
    raise error("HLO0608", f"{path}: there is no '{path.stem}.bytecode' beside it")


def method_of(
    meta: Mapping[str, Any],
    program: bytes,
    weights: Mapping[str, Any],
    constants: Sequence[Any],
    name: str,
) -> Method:
    """A method from its metadata as JSON has them. Raises `HloError` HLO0608."""
    try:
        return Method(
            str(meta["name"]),
            program,
            tuple(map(_signature, meta["input_signature"])),
            tuple(map(_signature, meta["output_signature"])),
            tuple(
                Location(str(one["type_"]), int(one["position"]), str(one["name"]))
                for one in meta["input_locations"]
            ),
            read_tree(meta.get("input_pytree_spec")),
            read_tree(meta.get("output_pytree_spec")),
            weights,
            constants,
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise error("HLO0608", f"{name}: not the metadata of a method: {problem!r}") from None


def _signature(one: Mapping[str, Any]) -> Signature:
    dynamic = tuple(map(int, one.get("dynamic_dims", ())))
    return Signature(tuple(map(int, one["shape"])), str(one["dtype"]), dynamic)
