"""Switches of JAX and TensorFlow around XLA's own, for programs of `mlirhlo.jit`.

Source: dumps reference, "JAX, environment", "Old JAX flags", "TensorFlow".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from mlirhlo.debug.options.tokens import tokenize
from mlirhlo.debug.options.values import BadValue, from_text
from mlirhlo.diagnostics import Diagnostic, Severity, error

IR_MODES = ("stablehlo", "jaxpr", "jaxpr_html", "eqn_count_pprof")
"""What JAX_DUMP_IR_MODES may name; other words are ignored, as JAX does."""

PLATFORMS: Mapping[str, str] = {
    "": "",
    "cpu": "cpu",
    "host": "cpu",
    "gpu": "gpu",
    "cuda": "gpu",
    "interpreter": "interpreter",
}
"""Names of platforms, of then and now, for `jax_platform_name`."""


HISTORIC: Mapping[str, str] = {
    "JAX_XLA_BACKEND": "jit(platform=…), or JAX_PLATFORM_NAME",
    "JAX_BACKEND_TARGET": "jit(platform=…); there are no remote services",
}
"""Variables that JAX forgot in 2021 and that have no effect here, and what stands in for them."""

_told: set[str] = set()
"""Variables that were told to be historic."""


@dataclass(frozen=True, slots=True)
class JaxSettings:
    """What the variables say; `JAX_DUMP_IR_TO` is `dump_ir_to`, and so on."""

    dump_ir_to: str = ""
    dump_ir_modes: tuple[str, ...] = ("stablehlo",)
    include_debug_info_in_dumps: bool = True
    compiler_detailed_logging_min_ops: int = 10
    dump_hlo_graph: str = ""
    dump_hlo_unoptimized: str = ""
    dump_hlo_optimized: str = ""
    dump_hlo_per_pass: str = ""
    hlo_profile: bool = False
    replica_count: int = 1
    platform_name: str = ""
    enable_x64: bool = True
    """Whether there are types of 64 bits; of `mlirhlo.numpy`, which has numpy's defaults, unlike JAX."""
    tf_dump_graph_prefix: str = ""
    tf_xla_clustering_debug: bool = False

    @property
    def dumps_stages(self) -> bool:
        """Whether the module is written before, between or after the passes."""
        return bool(self.dump_hlo_unoptimized or self.dump_hlo_optimized or self.dump_hlo_per_pass)

    @property
    def writes(self) -> bool:
        """Whether compilations leave files because of these variables."""
        return bool(
            self.dump_ir_to
            or self.dump_hlo_graph
            or self.dumps_stages
            or self.tf_xla_clustering_debug
        )


_TEXTS = ("dump_ir_to", "dump_hlo_graph", "dump_hlo_unoptimized", "dump_hlo_optimized",
          "dump_hlo_per_pass")  # fmt: skip


def jax_settings(environ: Mapping[str, str] | None = None) -> JaxSettings:
    """The variables as they are now. Raises `HloError` HLO0520 for values that do not fit."""
    environ = os.environ if environ is None else environ
    if not any(name.startswith(("JAX_", "TF_")) for name in environ):
        return _NOTHING
    _tell_historic(environ)
    texts = {name: environ.get(f"JAX_{name.upper()}", "") for name in _TEXTS}
    modes = environ.get("JAX_DUMP_IR_MODES")
    platform = environ.get("JAX_PLATFORM_NAME", "").lower()
    return JaxSettings(
        **texts,
        dump_ir_modes=("stablehlo",)
        if modes is None
        else tuple(mode for mode in modes.split(",") if mode in IR_MODES),
        include_debug_info_in_dumps=_bool(environ, "JAX_INCLUDE_DEBUG_INFO_IN_DUMPS", True),
        compiler_detailed_logging_min_ops=_int(
            environ, "JAX_COMPILER_DETAILED_LOGGING_MIN_OPS", 10
        ),
        hlo_profile=_bool(environ, "JAX_HLO_PROFILE", False),
        replica_count=_int(environ, "JAX_REPLICA_COUNT", 1),
        platform_name=PLATFORMS.get(platform, platform),
        enable_x64=_bool(environ, "JAX_ENABLE_X64", True),
        tf_dump_graph_prefix=environ.get("TF_DUMP_GRAPH_PREFIX", ""),
        tf_xla_clustering_debug=_clustering_debug(environ.get("TF_XLA_FLAGS", "")),
    )


_NOTHING = JaxSettings()


def _tell_historic(environ: Mapping[str, str]) -> None:
    for name, instead in HISTORIC.items():
        if name in environ and name not in _told:
            _told.add(name)
            message = f"{name} is historic: JAX has forgotten it, and it has no effect here"
            warning = Diagnostic("HLO0523", message, help=instead, severity=Severity.WARNING)
            import logging

            logging.getLogger("mlirhlo.flags").warning("%s", warning)


def _clustering_debug(text: str) -> bool:
    """Whether TF_XLA_FLAGS asks for graphs; it has the syntax of XLA_FLAGS, with flags of its own."""
    found = False
    for token in tokenize(text).flags:
        if token.name == "tf_xla_clustering_debug":
            try:
                found = bool(from_text(token.value, "bool"))
            except BadValue:
                raise _unfit("TF_XLA_FLAGS", token.text) from None
    return found


def _bool(environ: Mapping[str, str], name: str, default: bool) -> bool:
    text = environ.get(name)
    if text is None:
        return default
    value = {"1": True, "true": True, "yes": True, "y": True, "t": True, "on": True,
             "0": False, "false": False, "no": False, "n": False, "f": False, "off": False,
             "": False}.get(text.lower())  # fmt: skip
    if value is None:
        raise _unfit(name, text)
    return value


def _int(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise _unfit(name, text) from None


def _unfit(name: str, text: str) -> Exception:
    return error("HLO0520", f"Couldn't interpret value {text} of the variable {name}.")
