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

if TYPE_CHECKING:
    from mlirhlo import Module

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


def _tf() -> Any:
    return require("tensorflow", "tensorflow", "mlirhlo.tensorflow")


class JittedFunction:
    """A function that TensorFlow traces and this project executes."""

    def __init__(self, function: Callable[..., object]) -> None:
        tf = _tf()
        is_traced = hasattr(function, "experimental_get_compiler_ir")
        self._function: Any = function if is_traced else tf.function(function, jit_compile=True)
        self._programs: dict[int, Program] = {}
        update_wrapper(self, function, updated=())

    def lower(self, *args: object, **kwargs: object) -> Program:
        """The program for arguments like these. Raises `HloError` HLO0607."""
        args, kwargs = self._bound(args, kwargs)
        concrete = self._function.get_concrete_function(*args, **kwargs)
        try:
            generator = self._function.experimental_get_compiler_ir(*args, **kwargs)
        except ValueError as problem:
            raise _no_ir(problem) from None
        return Program(concrete, generator, self._bound)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, structured as the function returns it; variables it assigns are assigned.

        Raises `HloError` HLO0603, HLO0607 and HLO03xx.
        """
        bound, named = self._bound(args, kwargs)
        concrete = self._function.get_concrete_function(*bound, **named)
        # Arguments that are compiled in are no part of a concrete function's identity.
        program = self._programs.get(id(concrete))
        if program is None or program.has_folded_inputs:
            program = self._programs[id(concrete)] = self.lower(*args, **kwargs)
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


def jit(function: Callable[..., object]) -> JittedFunction:
    """`tf.function(jit_compile=True)`, executed here: `jit(f)(x)` returns numpy arrays.

    `function`: a Python function, or what `tf.function` made with `jit_compile=True`. Raises
    `HloError` HLO0600 without TensorFlow.
    """
    return JittedFunction(function)


def load(ir: str | bytes) -> Module:
    """The module of what `experimental_get_compiler_ir` returned at any of its stages.

    Needs no TensorFlow. Raises `HloError` as the readers do.
    """
    return module_of(ir)


@dataclass(eq=False, repr=False)
class Program:
    """A function compiled by TensorFlow for arguments of one kind."""

    concrete: Any
    """TensorFlow's own object: the concrete function."""
    _generator: Callable[..., Any]
    _bound: Callable[[Sequence[object], Mapping[str, object]], tuple[Any, Any]]
    _texts: dict[str, Any] = field(default_factory=dict[str, Any])

    def ir(self, stage: str = "hlo") -> str | bytes:
        """What TensorFlow hands out at a stage of `STAGES`.

        Raises `HloError`: HLO0601 for another stage, HLO0607 when TensorFlow cannot compile it.
        """
        stage = choose("stage", stage, STAGES)
        if stage not in self._texts:
            try:
                self._texts[stage] = self._generator(stage=stage)
            except Exception as problem:  # noqa: BLE001 - TensorFlow reports by many types
                raise _no_ir(problem) from None
        found: str | bytes = self._texts[stage]
        return found

    def as_text(self, stage: str = "hlo") -> str:
        """The program as TensorFlow prints it. Raises as `ir`; HLO0601 for binary stages."""
        ir = self.ir(choose("stage", stage, [s for s in STAGES if "serialized" not in s]))
        assert isinstance(ir, str)
        return ir

    def compiler_ir(self, stage: str = "hlo_serialized") -> Module:
        """A new module of ours. Raises as `ir`, and as the readers do."""
        return load(self.ir(stage))

    @cached_property
    def module(self) -> Module:
        """The module that is executed: the one before optimisations."""
        return self.compiler_ir()

    @cached_property
    def _executor(self) -> Callable[[Sequence[Any]], Any]:
        return executor_of(self.module)

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

        Raises `HloError` HLO0603 and HLO03xx.
        """
        tf = _tf()
        result = self._executor(self.arguments(*args, **kwargs))
        structure = self.concrete.structured_outputs
        leaves = tf.nest.flatten(structure, expand_composites=True)
        count = sum(leaf is not None for leaf in leaves)
        values = list(cast("Sequence[Any]", result if isinstance(result, tuple) else (result,)))
        self._assign(values[count:], count)
        results = iter(values)
        packed = [None if leaf is None else _to_numpy(next(results)) for leaf in leaves]
        return tf.nest.pack_sequence_as(structure, packed, expand_composites=True)

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


def _kind(tensor: Any) -> tuple[str, tuple[int | None, ...] | None]:
    """Type and shape of an input; sizes that are not known are None."""
    shape = tensor.shape
    return tensor.dtype.name, None if shape.rank is None else tuple(shape.as_list())


def _no_ir(problem: Exception) -> Exception:
    text = str(problem).split("\tTF_DUMP")[0]
    first = text.strip().removeprefix("Failed getting HLO text: '").split("\n")[0]
    mend = "XLA computes on numbers: keep strings, tables and files outside of the function"
    if "jit_compile=True" in text:
        mend = "mark it by tf.function(jit_compile=True), or give the Python function"
    return error("HLO0607", f"TensorFlow cannot compile the function: {first}", help=mend)
