"""Makes this compiler known to JAX; the entry point of the group `jax_plugins`."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from functools import partial
from typing import Any

from mlirhlo.importing import LATE
from mlirhlo.integrations.jax.pjrt.client import PLATFORMS

with LATE:
    from mlirhlo.debug import options as debug_options
    from mlirhlo.integrations.jax.pjrt import functions


def initialize() -> None:
    """Registers the platforms. JAX calls it when it looks for its platforms; nothing is loaded
    unless one of them is chosen."""
    from jax._src import config, xla_bridge

    chosen = str(config.jax_platforms.value or "").split(",")
    for name in PLATFORMS:
        if name in chosen:
            xla_bridge._nonexperimental_plugins.add(name)
            xla_bridge.register_backend_initialization_hook(_is_also_the_cpu)
            options = partial(_options, name != PLATFORMS[0])
            xla_bridge.register_plugin(name, priority=-100, c_api=_capsule(), options=options)


def _is_also_the_cpu(backend: Any) -> None:
    """Makes the platform `cpu` too, unless XLA's is asked for as well: JAX puts arguments of callbacks there."""
    from jax._src import xla_bridge

    if PLATFORMS[0] in backend.platform_version:
        xla_bridge._backends.setdefault("cpu", backend)


def _capsule() -> Any:
    """The interface in the form that jaxlib takes."""
    new = c.pythonapi.PyCapsule_New
    new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
    return new(c.addressof(functions.interface()), b"pjrt_c_api", None)


def _options(interpreted: bool) -> dict[str, int | bool]:
    """The client's options: as many devices as JAX or XLA's flag says that the CPU has."""
    from jax._src import xla_bridge

    count = xla_bridge.num_cpu_devices.value
    if count < 1:
        given = debug_options.process_flags().given.get("xla_force_host_platform_device_count", 1)
        count = int(str(given))
    return {functions.DEVICES_OPTION: max(count, 1), functions.INTERPRETER_OPTION: interpreted}
