"""A program as a front end hands it out, whatever its form, as a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo import load
from mlirhlo.formats import holds_hlo
from mlirhlo.integrations.computation import XlaComputation
from mlirhlo.runtime.programs import prepare

if TYPE_CHECKING:
    from mlirhlo import Module
    from mlirhlo.runtime.programs import Program


def module_of(ir: str | bytes) -> XlaComputation:
    """The module that `ir` holds: HLO text or proto, StableHLO text, bytecode or artifact.

    Raises `HloError` as `mlirhlo.load` does.
    """
    found = load(ir.encode("utf-8", "surrogateescape") if isinstance(ir, str) else ir)
    return XlaComputation(found.op, found.loaded)


def executor_of(
    module: Module,
    platform: str,
    options: Mapping[str, object] | None = None,
    name: str = "",
) -> Callable[[Sequence[Any]], Any]:
    """What runs the module on lists of its parameters; see `mlirhlo.runtime.programs.prepare`.

    A program of open sizes is prepared once for each combination of sizes.
    """
    if holds_hlo(module.op):
        return prepare(module.op, platform, options, name=name, source=lambda: module.stablehlo)
    programs: dict[object, Program] = {}

    def run(arguments: Sequence[Any]) -> Any:
        import numpy as np

        sizes = tuple(np.shape(argument) for argument in arguments)
        program = programs.get(sizes)
        if program is None:
            op = module._for(arguments)  # pyright: ignore[reportPrivateUsage]
            programs[sizes] = program = prepare(
                op, platform, options, name=name, source=lambda: module.stablehlo
            )
        return program(arguments)

    return run
