"""`run_hlo_module --platform=CPU`: modules as machine code, each compiled once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlirhlo.cli.report import usage_error
from mlirhlo.diagnostics import error

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.replay import Inputs
    from mlirhlo.interp.registry import Value
    from mlirhlo.runtime.executable import Executable

CPU = "CPU"
"""The platform's name, as XLA's tools say it."""


def use_threads(count: int) -> None:
    """Sets the threads of compiled code. Raises `UsageError` HLO0502."""
    from mlirhlo.runtime.threads import set_thread_count

    try:
        set_thread_count(count)
    except ValueError:
        raise usage_error(f"--threads={count}: at least one is needed") from None


@dataclass(slots=True)
class Compiled:
    """What was compiled so far."""

    executables: dict[ModuleOp, Executable] = field(default_factory=dict["ModuleOp", "Executable"])

    def prepare(self, module: ModuleOp, inputs: Inputs) -> Callable[[], list[Value]]:
        """Compiles the module; what is returned runs it on each device's inputs.

        Raises `HloError` HLO0432 and HLO0435 for what has no code, such as devices that exchange
        values.
        """
        from mlirhlo.debug.replay import depends_on_device
        from mlirhlo.runtime.compiler import compile_module

        count = inputs.replicas * inputs.partitions
        if count > 1 and depends_on_device(module):
            raise error(
                "HLO0435",
                f"the module's {count} devices work together: only one device has code for the CPU",
                help="--platform=Interpreter simulates the devices",
            )
        executable = self.executables.get(module)
        if executable is None:
            executable = self.executables[module] = compile_module(module)
        per_device = inputs.per_device
        run = executable
        return lambda: [
            run(*per_device[device if len(per_device) > 1 else 0]) for device in range(count)
        ]
