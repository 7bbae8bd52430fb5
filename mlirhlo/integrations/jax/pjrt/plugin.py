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
from mlirhlo.integrations.optional import require

with LATE:
    from mlirhlo.debug import options as debug_options
    from mlirhlo.integrations.jax.pjrt import client_functions, functions


def initialize() -> None:
    """Registers the platforms. JAX calls it when it looks for its platforms; nothing is loaded
    unless one of them is chosen."""
    from jax._src import config, xla_bridge

    chosen = str(config.jax_platforms.value or "").split(",")
    for name in PLATFORMS:
        if name in chosen:
            xla_bridge._nonexperimental_plugins.add(name)
            xla_bridge.register_backend_initialization_hook(_is_also_the_cpu)
            factory = partial(_client, name)
            xla_bridge.register_plugin(name, priority=-100, c_api=_capsule(), factory=factory)


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


def _client(name: str) -> Any:
    """A client of a platform. It is not given JAX's connection to other processes, which it does not need: with one,
    jaxlib watches them in a thread that goes on after the end."""
    xla_client: Any = require("jaxlib.xla_client", "jax", "the platform of JAX")
    if not xla_client.pjrt_plugin_initialized(name):
        xla_client.initialize_pjrt_plugin(name)
    return xla_client.make_c_api_client(name, _options(name != PLATFORMS[0]), None)


def _options(interpreted: bool) -> dict[str, int | bool]:
    """The client's options: as many devices as JAX or XLA's flag says that the CPU has, and the processes."""
    from jax._src import distributed, xla_bridge

    state = distributed.global_state
    count = xla_bridge.num_cpu_devices.value
    if count < 1:
        given = debug_options.process_flags().given.get("xla_force_host_platform_device_count", 1)
        count = int(str(given))
    return {
        client_functions.DEVICES_OPTION: max(count, 1),
        client_functions.INTERPRETER_OPTION: interpreted,
        client_functions.PROCESS_OPTION: state.process_id,
        client_functions.PROCESSES_OPTION: state.num_processes or 1,
    }
