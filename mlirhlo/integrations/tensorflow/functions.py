"""`jit` and `Program`: what TensorFlow hands to its compiler, as modules of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.diagnostics import error
from mlirhlo.integrations.ir import executor_of, module_of
from mlirhlo.integrations.optional import choose, require
from mlirhlo.integrations.tensorflow.matching import parameters_for
from mlirhlo.integrations.tensorflow.refusals import refusal_types, refusals, refused
from mlirhlo.runtime.programs import CPU, XLA, obey_for_other_compiler, platform_named

if TYPE_CHECKING:
    from mlirhlo import Module
    from mlirhlo.integrations.computation import XlaComputation

STAGES: tuple[str, ...] = (
    "hlo",
    "hlo_no_metadata",
    "hlo_serialized",
    "optimized_hlo",
    "optimized_hlo_serialized",
    "optimized_hlo_proto_serialized",
    "stablehlo",
    "stablehlo_serialized",
)
"""Stages that `experimental_get_compiler_ir` offers and that are programs."""

RESULTS: tuple[str, ...] = ("numpy", "tensorflow")


def _tf() -> Any:
    return require("tensorflow", "tensorflow", "mlirhlo.tensorflow")


class JittedFunction:
    """A function that TensorFlow traces and this project executes."""

    def __init__(self, function: Callable[..., object], settings: Settings) -> None:
        tf = _tf()
        is_traced = hasattr(function, "experimental_get_compiler_ir")
        self._function: Any = function if is_traced else tf.function(function, jit_compile=True)
        self.settings = settings
        self._programs: dict[object, Program] = {}
        update_wrapper(self, function, updated=())

    def lower(self, *args: object, **kwargs: object) -> Program:
        """The program for arguments like these.

        Raises `HloError` HLO0607, which is a `tf.errors.InvalidArgumentError` as well.
        """
        args, kwargs = self._bound(args, kwargs)
        concrete = self._function.get_concrete_function(*args, **kwargs)
        with refusals():
            try:
                generator = self._function.experimental_get_compiler_ir(*args, **kwargs)
            except ValueError as problem:
                raise refused(problem) from None
        return Program(concrete, generator, self._bound, self._function, self.settings)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, structured as the function returns it; variables it assigns are assigned.

        Raises `HloError` HLO0603 and HLO03xx; HLO0607, HLO0432 and HLO0435, which are
        `tf.errors.InvalidArgumentError` as well, for functions that cannot be compiled.
        """
        bound, named = self._bound(args, kwargs)
        concrete = self._function.get_concrete_function(*bound, **named)
        key = (id(concrete), _open_sizes(concrete, bound, named))
        program = self._programs.get(key)
        # Arguments that are compiled in are no part of a concrete function's identity.
        if program is None or program.has_folded_inputs:
            program = self._programs[key] = self.lower(*args, **kwargs)
        return program(*args, **kwargs)

    def _bound(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with defaults filled in, which TensorFlow's own binding forgets."""
        try:
            bound = inspect.signature(self._function.python_function).bind(*args, **kwargs)
        except (TypeError, ValueError, AttributeError):
            return tuple(args), dict(kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs


def jit(
    function: Callable[..., object] | None = None,
    *,
    platform: str | None = None,
    options: Mapping[str, object] | None = None,
    results: str = "numpy",
) -> Any:
    """`tf.function(jit_compile=True)`, executed here: `jit(f)(x)`; also a decorator.

    - `function`: a Python function, or what `tf.function` made with `jit_compile=True`.
    - `platform`: `"cpu"` for machine code (the default, unless `JAX_PLATFORM_NAME` says otherwise),
      `"interpreter"`, or `"XLA"` for TensorFlow's own compiler.
    - `options`: XLA's debug options (`{"xla_dump_to": "dumps"}`), which go over the flags of the environment;
      TensorFlow's compiler takes none.
    - `results`: `"numpy"` arrays, or tensors of `"tensorflow"`.

    Raises `HloError` HLO0600 without TensorFlow, HLO0601 for an unknown platform or options to XLA.
    """
    platform = platform_named(platform)
    if platform == XLA and options:
        raise error(
            "HLO0601",
            "TensorFlow's compiler takes no options",
            help="set XLA_FLAGS before TensorFlow is imported",
        )
    settings = Settings(platform, options, choose("kind of results", results, RESULTS))

    def decorate(f: Callable[..., object]) -> JittedFunction:
        return JittedFunction(f, settings)

    return decorate if function is None else decorate(function)


def load(ir: str | bytes) -> Module:
    """The module of what `experimental_get_compiler_ir` returned at any of its stages.

    Needs no TensorFlow. Raises `HloError` as the readers do.
    """
    return module_of(ir)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a function is executed."""

    platform: str = CPU
    options: Mapping[str, object] | None = None
    results: str = RESULTS[0]

    def result(self, value: Any) -> Any:
        """An array as the user wants it."""
        array = _to_numpy(value)
        return array if self.results == RESULTS[0] else _tf().convert_to_tensor(array)


@dataclass(eq=False, repr=False)
class Program:
    """A function compiled by TensorFlow for arguments of one kind."""

    concrete: Any
    """TensorFlow's own object: the concrete function."""
    _generator: Callable[..., Any]
    _bound: Callable[[Sequence[object], Mapping[str, object]], tuple[Any, Any]]
    _function: Any
    settings: Settings
    _texts: dict[str, Any] = field(default_factory=dict[str, Any])
    _is_told: bool = False

    def ir(self, stage: str = "hlo") -> str | bytes:
        """What TensorFlow hands out at a stage of `STAGES`.

        Raises `HloError`: HLO0601 for another stage, HLO0607 when TensorFlow cannot compile it.
        """
        stage = choose("stage", stage, STAGES)
        if stage not in self._texts:
            with refusals():
                try:
                    self._texts[stage] = self._generator(stage=stage)
                except refusal_types() as problem:
                    raise refused(problem) from None
        found: str | bytes = self._texts[stage]
        return found

    def as_text(self, stage: str = "hlo") -> str:
        """The program as TensorFlow prints it. Raises as `ir`; HLO0601 for binary stages."""
        ir = self.ir(choose("stage", stage, [s for s in STAGES if "serialized" not in s]))
        assert isinstance(ir, str)
        return ir

    def compiler_ir(self, stage: str = "hlo_serialized") -> XlaComputation:
        """A new module of ours, with the methods of JAX's `XlaComputation`. Raises as `ir`, and as the readers do."""
        return module_of(self.ir(stage))

    @cached_property
    def module(self) -> Module:
        """The module that is executed: the one before optimisations."""
        return self.compiler_ir()

    @cached_property
    def _executor(self) -> Callable[[Sequence[Any]], Any]:
        name = str(getattr(self._function, "__name__", "") or self.concrete.name)
        with refusals():
            return executor_of(self.module, self.settings.platform, self.settings.options, name)

    @cached_property
    def _parameters(self) -> tuple[int, ...]:
        """For each parameter of the module the input of the concrete function it is."""
        shapes = [p.shape for p in self.module.hlo.entry.parameters]
        return parameters_for(shapes, [_kind(i) for i in self._example_inputs()])

    @property
    def has_folded_inputs(self) -> bool:
        """Whether the values of some arguments were compiled in."""
        return len(self._parameters) < len(self.concrete.inputs)

    def _example_inputs(self) -> list[Any]:
        captured = [self._value_of(c) for c in self.concrete.captured_inputs]
        count = len(self.concrete.inputs) - len(captured)
        return [*self.concrete.inputs[:count], *captured]

    def _value_of(self, captured: Any) -> Any:
        """A captured tensor, or the variable behind its handle."""
        for variable in self.concrete.variables:
            if variable.handle is captured:
                return variable
        return captured

    def arguments(self, *args: object, **kwargs: object) -> list[Any]:
        """What the module's parameters are for these arguments: numpy arrays in order."""
        args, kwargs = self._bound(args, kwargs)
        kind = self.concrete.function_type
        flat = kind.unpack_inputs(kind.bind_with_defaults(args, kwargs, {}))
        captured = [self._value_of(c) for c in self.concrete.captured_inputs]
        inputs = [*flat, *captured]
        return [_to_numpy(inputs[number]) for number in self._parameters]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result; variables that the function assigns are assigned.

        Raises `HloError` as a call of the jitted function.
        """
        tf = _tf()
        if self.settings.platform == XLA:
            self._tell_xla()
            return tf.nest.map_structure(self.settings.result, self._function(*args, **kwargs))
        result = self._executor(self.arguments(*args, **kwargs))
        structure = self.concrete.structured_outputs
        leaves = tf.nest.flatten(structure, expand_composites=True)
        count = sum(leaf is not None for leaf in leaves)
        values = list(cast("Sequence[Any]", result if isinstance(result, tuple) else (result,)))
        self._assign(values[count:], count)
        results = iter(values)
        packed = [None if leaf is None else self.settings.result(next(results)) for leaf in leaves]
        return tf.nest.pack_sequence_as(structure, packed, expand_composites=True)

    def _tell_xla(self) -> None:
        """What JAX's variables ask of a program that TensorFlow's own compiler runs."""
        if not self._is_told:
            self._is_told = True
            obey_for_other_compiler(
                lambda: self.module.op, lambda: self.compiler_ir("optimized_hlo_serialized").op
            )

    def _assign(self, updates: Sequence[Any], first: int) -> None:
        """Values of variables stand after the results; aliases say which variable each is."""
        aliases = self.module.hlo.input_output_alias
        inputs = self._example_inputs()
        targets = {
            one.output_index[0]: inputs[self._parameters[one.parameter_number]]
            for one in (aliases.entries if aliases is not None else ())
            if len(one.output_index) == 1
        }
        for position, value in enumerate(updates, first):
            variable = targets.get(position)
            if variable is None or not hasattr(variable, "assign"):
                raise error("HLO0603", f"result {position} of the program is no known variable")
            variable.assign(value)


def _to_numpy(value: Any) -> Any:
    import numpy as np

    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _open_sizes(
    concrete: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[object, ...]:
    """Shapes of the arguments of a function that takes several: each combination is a program."""
    if all(one.shape.is_fully_defined() for one in concrete.inputs):
        return ()
    kind = concrete.function_type
    flat = kind.unpack_inputs(kind.bind_with_defaults(args, kwargs, {}))
    return tuple(tuple(one.shape) for one in flat)


def _kind(tensor: Any) -> tuple[str, tuple[int | None, ...] | None]:
    """Type and shape of an input; sizes that are not known are None."""
    shape = tensor.shape
    return tensor.dtype.name, None if shape.rank is None else tuple(shape.as_list())
