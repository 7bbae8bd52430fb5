"""Expressions for names of modules that match none: silence there is taken for dumps that are missing."""

from __future__ import annotations

import atexit

from mlirhlo.debug.dump.settings import as_expression
from mlirhlo.debug.dump.sink import tell

_MOST_NAMES = 5


class Unmatched:
    """Expressions that no module of this process has matched yet."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        """Names of the modules that did not match, by expression."""
        self.done: set[str] = set()
        """Expressions that matched a module."""

    def matched(self, expression: str) -> None:
        """Notes that a module is dumped."""
        self.done.add(expression)
        self.names.pop(expression, None)

    def missed(self, expression: str, name: str) -> None:
        """Notes that the module `name` is not dumped; at the end of the process `report` runs."""
        if expression in self.done:
            return
        if not self.names:
            atexit.register(self.report)
        self.names.setdefault(expression, []).append(name)

    def report(self) -> None:
        """Warns (HLO0525) of each expression that matched none of the modules there were."""
        for expression, missed in self.names.items():
            shown = ", ".join(sorted(set(missed))[:_MOST_NAMES])
            more = ", …" if len(set(missed)) > _MOST_NAMES else ""
            meant = as_expression(expression)
            tell(
                ("unmatched", expression),
                "HLO0525",
                f"--xla_dump_hlo_module_re={expression} matches no module: nothing was dumped",
                (f"it is a regular expression, such as '{meant}'; " if meant else "")
                + f"modules were: {shown}{more}",
                fatal=False,
            )
        self.names.clear()


UNMATCHED = Unmatched()
"""Those of this process."""
