"""Programs on the interpreter: slow, and without generated code, so that it can judge what the compiler makes."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.integrations.jax.pjrt.machine import unimplemented
from mlirhlo.interp.engine import Interpreter
from mlirhlo.interp.values import for_user
from mlirhlo.runtime.executable import Memory

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.interp.machine import Machine


class Interpreted:
    """A module that the interpreter runs."""

    memory = Memory(0, 0, 0, 0)
    aliases: Mapping[int, int] = {}
    descriptor: bytes | None = None
    layouts: tuple[tuple[int, ...], ...] = ()
    has_callbacks = True

    @property
    def custom_calls(self) -> frozenset[str]:
        """Targets of all custom calls."""
        ops = HloModule(self._module).instructions
        return frozenset(str(getattr(op, "custom_call_target", "")) for op in ops) - {""}

    def __init__(self, module: ModuleOp) -> None:
        self._module = module

    def worlds(self, replicas: int, partitions: int) -> None:
        """None, since all runs are Python's."""

    def __call__(self, *arguments: Any) -> Any:
        """The result on one device."""
        return for_user(Interpreter(self._module).run(arguments))

    def run_ranks(
        self, machine: Machine, own: Sequence[Sequence[Any]], owners: Sequence[int]
    ) -> list[Any]:
        """Nothing: the interpreter's devices are in one process. Raises `PjrtError`."""
        del machine, own, owners
        raise unimplemented("the interpreter runs the devices of one process")

    def run_on(
        self, machine: Machine, replica: int, partition: int, arguments: Sequence[Any]
    ) -> Any:
        """The result on one device of a machine."""
        del replica, partition  # the thread is the device's
        return for_user(Interpreter(self._module, machine).run(arguments))
