"""Arguments as a module's parameters, and its result as the function's tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirhlo.diagnostics import error
from mlirhlo.integrations.optional import require

if TYPE_CHECKING:
    import numpy as np

    from mlirhlo.integrations.jax.compiled import Lowered

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _jax() -> Any:
    return require("jax", "jax", "mlirhlo.jax")


@dataclass(frozen=True, slots=True)
class Calling:
    """What JAX did to the arguments on the way to the module's parameters."""

    constants: tuple[Any, ...]
    """Arrays that the function closes over and the module takes first."""
    kept: tuple[int, ...] | None
    """Indices of the flat arguments (constants first) that are parameters; None for all."""
    callbacks: tuple[Any, ...] = ()
    """Python functions that the program calls, by number."""

    @classmethod
    def of(cls, lowered: Any) -> Calling:
        """Raises `HloError` HLO0603 for a program that needs more than one device, or the host."""
        lowering = lowered._lowering
        facts = lowering.compile_args
        devices = facts.get("num_devices", 1)
        if devices > 1:
            raise error(
                "HLO0603",
                f"the program is for {devices} devices; a function is executed on one",
                help="take lower(…).compiler_ir('hlo') and run it by Module.on_devices",
            )
        if facts.get("ordered_effects"):
            raise error(
                "HLO0603",
                "the program has ordered effects, which are not kept in order here",
                help="leave out ordered=True of debug.print and io_callback, or execute on 'XLA'",
            )
        if facts.get("mut") is not None:
            raise error(
                "HLO0603",
                "the program changes references (jax.new_ref)",
                help="take arrays and return the new values, or execute on 'XLA'",
            )
        kept = facts.get("kept_var_idx")
        constants: Sequence[Any] = getattr(lowering, "const_args", None) or ()
        callbacks = tuple(facts.get("host_callbacks") or ())
        return cls(tuple(constants), None if kept is None else tuple(sorted(kept)), callbacks)

    def arguments(self, given: tuple[Any, Any], lowered: Any) -> list[Array]:
        """Flat numpy arrays for the module's parameters.

        Raises `HloError` HLO0603 when the structure or a shape is not the one that was lowered.
        """
        flat, tree = _jax().tree.flatten(given)
        if tree != lowered.in_tree:
            raise error(
                "HLO0603",
                f"the arguments are {tree}, the function was lowered for {lowered.in_tree}",
                help="static arguments are named by static_argnums or static_argnames",
            )
        infos = _jax().tree.leaves(lowered.args_info)
        every = [*self.constants, *map(_argument, flat, infos, range(len(flat)))]
        return [
            to_numpy(a) for a in (every if self.kept is None else (every[i] for i in self.kept))
        ]

    def result(self, result: Any, lowered: Lowered, kind: str) -> Any:
        """The function's tree of numpy or JAX arrays from what the module returned."""
        jax = _jax()
        infos = jax.tree.leaves(lowered.out_info)
        parts = cast("Sequence[Any]", result if isinstance(result, tuple) else (result,))
        values = [_result(part, info, kind) for part, info in zip(parts, infos, strict=True)]
        return jax.tree.unflatten(lowered.out_tree, values)


def _argument(given: Any, info: Any, number: int) -> Any:
    """A value in the type that was traced; numbers of Python take it on."""
    import numpy as np

    if _is_key(info.dtype):
        return given
    array = to_numpy(given)
    if array.shape != tuple(info.shape):
        raise error(
            "HLO0603",
            f"argument {number} has shape {list(array.shape)}, the function was lowered for"
            f" {list(info.shape)}",
            help="lower the function again for it, or call the result of jit",
        )
    if array.dtype == info.dtype:
        return array
    if not np.can_cast(array.dtype, info.dtype, "same_kind") and not isinstance(
        given, int | float | complex
    ):
        raise error(
            "HLO0603",
            f"argument {number} is of type {array.dtype}, the function was lowered for"
            f" {info.dtype}",
        )
    return array.astype(info.dtype)


def _result(part: Any, info: Any, kind: str) -> Any:
    import numpy as np

    jax = _jax()
    if info.dtype == jax.dtypes.float0:
        return np.zeros(info.shape, jax.dtypes.float0)
    if _is_key(info.dtype):
        return jax.random.wrap_key_data(part, impl=info.dtype._impl.name)
    return jax.numpy.asarray(part) if kind == "jax" else np.asarray(part)


def to_numpy(value: Any) -> Array:
    """An array as numpy has it; a random key as its data. Keys of numpy results stay keys."""
    import numpy as np

    if _is_key(getattr(value, "dtype", None)):
        value = _jax().random.key_data(value)
    try:
        return np.asarray(value)
    except _jax().errors.TracerArrayConversionError:
        raise error(
            "HLO0603",
            "the function was called inside a transformation of JAX, without values",
            help="transform first: jit(jax.vmap(f)) and not jax.vmap(jit(f))",
        ) from None


def _is_key(dtype: object) -> bool:
    dtypes = _jax().dtypes
    return dtype is not None and bool(dtypes.issubdtype(dtype, dtypes.prng_key))
