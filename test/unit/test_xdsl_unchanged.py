"""Importing this package leaves xDSL as others know it, but for what is listed here."""

from __future__ import annotations

import sys

from support import run

CHANGED = {
    "xdsl.ir.core.Operation.__hash__",
    "xdsl.ir.core.SSAValue.__hash__",
    "xdsl.irdl.operations.IRDLOperation.__hash__",
    "xdsl.irdl.operations.OpDef.verify",
}
"""Values and operations hash as before, by identity, without a call of Python; operations of a kind that has been
verified are not verified again. This list only gets shorter."""

SOURCE = """
import importlib, sys
import xdsl.dialects.builtin, xdsl.parser, xdsl.printer, xdsl.pattern_rewriter, xdsl.irdl, xdsl.traits

def snapshot():
    found = {}
    for module in [m for n, m in sys.modules.items() if n.startswith("xdsl.") and n in known]:
        for name, value in vars(module).items():
            if isinstance(value, type(sys)):
                continue
            found[f"{module.__name__}.{name}"] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                for key, attribute in vars(value).items():
                    found[f"{module.__name__}.{name}.{key}"] = attribute
    return found

known = set(sys.modules)
before = snapshot()
import mlirhlo, mlirhlo.dialects.hlo, mlirhlo.dialects.quick, mlirhlo.rewrites.pipelines, mlirhlo.lowering.cpu
after = snapshot()
for name in {**before, **after}:
    if name.rpartition(".")[2] not in ("__abstractmethods__", "_abc_impl", "__dict__", "__weakref__", "__doc__"):
        if after.get(name) is not before.get(name):
            print(name)
"""


def test_importing_changes_nothing_else() -> None:
    done = run(sys.executable, "-c", SOURCE)
    changed = {name for name in done.out.split() if not name.endswith("irdl_op_definition")}
    assert changed <= CHANGED, done.err
