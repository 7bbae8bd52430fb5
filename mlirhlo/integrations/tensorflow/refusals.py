"""What is raised for a function that cannot be compiled: an `HloError` that TensorFlow's users catch too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from mlirhlo.diagnostics import Diagnostic, HloError, error
from mlirhlo.integrations.optional import require


@contextmanager
def refusals() -> Generator[None]:
    """Raises every `HloError` of its block as a `tf.errors.InvalidArgumentError` as well."""
    try:
        yield
    except HloError as problem:
        raise _kind()(*problem.diagnostics) from problem.__cause__


@cache
def _kind() -> type[HloError]:
    invalid: Any = require("tensorflow", "tensorflow", "mlirhlo.tensorflow").errors
    invalid = invalid.InvalidArgumentError

    def initialise(self: Any, *diagnostics: Diagnostic) -> None:
        invalid.__init__(self, None, None, "\n".join(map(str, diagnostics)))
        HloError.__init__(self, *diagnostics)

    def reduce(self: Any) -> tuple[Any, tuple[Diagnostic, ...]]:
        return _rebuilt, self.diagnostics

    members: dict[str, Any] = {
        "__init__": initialise,
        "__reduce__": reduce,
        "__module__": __name__,
        "__doc__": "A function that cannot be compiled.",
    }
    return cast("type[HloError]", type("RefusedFunction", (invalid, HloError), members))


def _rebuilt(*diagnostics: Diagnostic) -> HloError:
    return _kind()(*diagnostics)


def refused(problem: Exception) -> HloError:
    """TensorFlow's refusal of a function, with our code (HLO0607)."""
    text = str(problem).split("\tTF_DUMP")[0]
    first = text.strip().removeprefix("Failed getting HLO text: '").split("\n")[0]
    mend = "XLA computes on numbers: keep strings, tables and files outside of the function"
    if "jit_compile=True" in text:
        mend = "mark it by tf.function(jit_compile=True), or give the Python function"
    return error("HLO0607", f"TensorFlow cannot compile the function: {first}", help=mend)


def refusal_types() -> tuple[type[Exception], ...]:
    """The exceptions by which TensorFlow refuses to import or to compile a graph."""
    errors: Any = require("tensorflow", "tensorflow", "mlirhlo.tensorflow").errors
    return (ValueError, NotImplementedError, errors.OpError)
