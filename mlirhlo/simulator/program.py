"""Loaded modules: their variables in memory, their kernels on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error
from mlirhlo.dialects.ptx import AliasOp, ModuleOp, Variable, VariableOp
from mlirhlo.formats.ptx import flat
from mlirhlo.simulator.linker import Code, Linker
from mlirhlo.simulator.memory import CODE_BASE, GLOBAL_BASE, INITIALISED, READ_ONLY, Arena
from mlirhlo.simulator.variables import initial_bytes, sized

if TYPE_CHECKING:
    from mlirhlo.formats.ptx import FlatFunction

CODE_STRIDE = 16
"""Distance of the addresses of two functions."""


class Program:
    """A module on a machine; made by `Machine.load`."""

    def __init__(
        self, module: ModuleOp, arena: Arena, file: str = "<string>", text: str = ""
    ) -> None:
        self.module, self.arena, self.file = module, arena, file
        self.lines = tuple(text.split("\n"))
        self.functions = {op.symbol: op for op in module.functions if not op.is_declaration}
        for op in module.statements:
            if isinstance(op, AliasOp):
                alias, aliasee = op.alias.data, op.aliasee.data
                if aliasee in self.functions:
                    self.functions[alias] = self.functions[aliasee]
        self.variables: dict[str, Variable] = {
            variable.name: variable
            for op in module.statements
            if isinstance(op, VariableOp)
            for variable in op.variables
        }
        self.addresses: dict[str, int] = {
            name: CODE_BASE + (number + 1) * CODE_STRIDE
            for number, name in enumerate(self.functions)
        }
        self._code: dict[str, Code] = {}
        self._flat: dict[str, FlatFunction] = {}
        self._place_variables()

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(name for name, op in self.functions.items() if op.is_entry)

    def _place_variables(self) -> None:
        for variable in self.variables.values():
            if variable.space in ("global", "const") and (size := sized(variable)):
                state = READ_ONLY if variable.space == "const" else INITIALISED
                index = self.arena.allocate(size, variable.name, state)
                self.addresses[variable.name] = index + GLOBAL_BASE
        for variable in self.variables.values():
            if variable.name in self.addresses and variable.name not in self.functions:
                data = initial_bytes(variable, sized(variable), self.addresses)
                index = self.addresses[variable.name] - GLOBAL_BASE
                self.arena.bytes[index : index + len(data)] = list(data)

    def flat(self, name: str) -> FlatFunction:
        """The instructions of a function."""
        if name not in self._flat:
            self._flat[name] = flat(self.functions[name])
        return self._flat[name]

    def code(self, entry: str) -> Code:
        """The kernel `entry`, linked. Raises `HloError` HLO0774 when there is none."""
        if entry not in self._code:
            if entry not in self.functions:
                raise error(
                    "HLO0774",
                    f"no kernel {entry!r}",
                    help=f"the module has {', '.join(self.entries) or 'none'}",
                )
            self._code[entry] = Linker(self, entry).link()
        return self._code[entry]
