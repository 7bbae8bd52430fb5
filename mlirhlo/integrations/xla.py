"""Modules that the real XLA inside JAX compiles and runs on the CPU: `platform="XLA"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE
from mlirhlo.integrations.optional import require

with LATE:
    from mlirhlo import formats
    from mlirhlo.dialects.hlo import module as hlo_module
    from mlirhlo.dialects.hlo import shapes
    from mlirhlo.formats import proto as formats_proto
    from mlirhlo.interp import engine, values


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class XlaProgram:
    """An HLO module that the real XLA compiled."""

    def __init__(self, module: ModuleOp, options: Mapping[str, object]) -> None:
        """Raises `HloError` HLO0600 without JAX, HLO0611 for what XLA refuses, and for results of dynamic
        size, which JAX does not hand out."""
        self._inputs = engine.Interpreter(module).inputs
        self._shape = hlo_module.HloModule(module).entry.root.shape
        for _, part in shapes.leaves(self._shape):
            if isinstance(part, shapes.ArrayShape) and part.is_dynamic:
                raise error(
                    "HLO0611",
                    f"a result of dynamic size, {part}, does not come out of the XLA inside JAX",
                    help="execute on 'cpu' or 'interpreter'",
                )

        purpose = "platform 'XLA'"
        self._jax = require("jax", "jax", purpose)
        hlo, jaxlib = (require(f"jaxlib.{name}", "jax", purpose) for name in ("_hlo", "_jax"))
        proto = formats_proto.encode_module(module, keep_config=False).SerializeToString()
        self._device = self._jax.devices("cpu")[0]
        compile_options = jaxlib.CompileOptions()
        compile_options.env_option_overrides = list(options.items())
        # JAX hands LAPACK's routines to XLA when it lowers a call of one; here nothing does.
        require("jaxlib.lapack", "jax", purpose)._lapack.initialize()
        try:
            program = jaxlib.mlir.xla_computation_to_mlir_module(hlo.XlaComputation(proto))
            devices = jaxlib.DeviceList((self._device,))
            self._executable = self._device.client.compile_and_load(
                program, devices, compile_options
            )
        except Exception as problem:
            first = str(problem).strip().split("\n")[0]
            raise error("HLO0611", f"XLA cannot compile the module: {first}") from problem

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The result for the module's parameters: a numpy array, or a tuple of them."""
        import numpy as np

        inputs = [a for value in self._inputs(arguments) for a in values.arrays_of(value)]
        with self._jax.enable_x64(True):
            given = [self._jax.device_put(one, self._device) for one in inputs]
            results = self._executable.execute_sharded(given)
            parts = results.disassemble_into_single_device_arrays()
        return values.unflatten((np.array(part[0]) for part in parts), self._shape)

    def optimized(self) -> ModuleOp:
        """The module after all of XLA's passes."""
        (module,) = self._executable.hlo_modules()
        return formats.load(module.as_serialized_hlo_module_proto(), "pb").module
