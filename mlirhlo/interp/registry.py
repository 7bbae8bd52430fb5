"""Who gives each opcode its meaning, and what a meaning is given.

A meaning is a function of the instruction, its input values and the frame it runs in; it returns
the result value. Values are numpy arrays in logical order (ml_dtypes for the narrow types), tuples
of values, `TOKEN`, and `DynamicArray` for arrays with bounded dynamic dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from mlirhlo.interp.value_types import TOKEN as TOKEN
from mlirhlo.interp.value_types import Array as Array
from mlirhlo.interp.value_types import DynamicArray as DynamicArray
from mlirhlo.interp.value_types import Token as Token
from mlirhlo.interp.value_types import Value as Value

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.computation import ComputationOp
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp
    from mlirhlo.interp.machine import Machine


class Program(Protocol):
    """What a meaning may ask of the module it belongs to before anything runs."""

    def computation(self, name: str) -> ComputationOp:
        """The computation of that name. Raises `HloError` HLO0304."""
        ...

    def has_side_effect(self, op: Instruction) -> bool:
        """Whether `op` is run even if no result depends on it."""
        ...


class Frame(Protocol):
    """What a meaning may ask of the interpreter that runs it."""

    @property
    def program(self) -> Program:
        """The module."""
        ...

    @property
    def replica(self) -> int:
        """Number of the simulated replica."""
        ...

    @property
    def partition(self) -> int:
        """Number of the simulated partition."""
        ...

    @property
    def machine(self) -> Machine:
        """Simulated devices: collectives, channels, host queues, random state, custom calls."""
        ...

    def call(self, computation: str, arguments: Sequence[Value]) -> Value:
        """Runs a computation of the module."""
        ...

    def value(self, value: SSAValue, arguments: Sequence[Value]) -> Value:
        """What one value of a scalar computation is, place by place of the `arguments`."""
        ...

    def call_elementwise(self, computation: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Applies a scalar computation to whole arrays at once (all of one shape); for reducers,
        comparators and maps. A tuple result gives several arrays.
        """
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """What a generator meaning yields to have a computation run; it is sent the result.

    Calls made this way do not nest on the Python stack: use them where programs nest deeply.
    """

    computation: str
    arguments: Sequence[Value]
    hands_over: bool = False
    """Whether `arguments` is a list to be emptied, so that the callee holds the only references
    and may overwrite what it got."""


Meaning: TypeAlias = "Callable[[Any, Sequence[Any], Frame], Value | Generator[Call, Value, Value]]"
Run: TypeAlias = "Callable[[Sequence[Any], Frame], Value | Generator[Call, Value, Value]]"
"""A meaning with its instruction worked in."""
Prepare: TypeAlias = "Callable[[Any, Program], Run]"
F = TypeVar("F", bound=Callable[..., Any])

MEANINGS: dict[str, Meaning] = {}
"""Meaning of every opcode, by its name in HLO text."""


def evaluates(*opcodes: str) -> Callable[[F], F]:
    """Decorator: registers `function(op, inputs, frame)` as the meaning of `opcodes`."""

    def register(function: F) -> F:
        for opcode in opcodes:
            if opcode in MEANINGS:
                raise ValueError(f"{opcode} has a meaning already")
            MEANINGS[opcode] = function
        return function

    return register


PREPARED: dict[str, Prepare] = {}
"""Opcodes whose meaning comes in two stages."""


def prepares(*opcodes: str) -> Callable[[F], F]:
    """Decorator: registers `function(op, program)`, which works out once what depends on the
    instruction alone and returns `run(inputs, frame)`, as the meaning of `opcodes`.
    """

    def register(function: F) -> F:
        def meaning(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Any:
            return function(op, frame.program)(inputs, frame)

        evaluates(*opcodes)(meaning)
        PREPARED.update(dict.fromkeys(opcodes, function))
        return function

    return register


READS_MORE: dict[str, Callable[[CustomCallOp], Sequence[SSAValue]]] = {}
"""Targets of custom calls whose meaning gets values of their computation after the operands: which."""
