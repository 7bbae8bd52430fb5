"""`TF_XLA_FLAGS`: the flags of TensorFlow's auto-clustering."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from mlirhlo.debug.options.tokens import tokenize
from mlirhlo.diagnostics import error
from mlirhlo.integrations.tensorflow.clustering.table import table

_PREFIX = "tf_xla_"
_WITHOUT_EFFECT = frozenset([
    "always_defer_compilation", "async_compilation", "bridge_v2_nonreplicated",
    "bridge_v2_replicated", "call_module_disabled_checks", "check_cluster_input_numerics",
    "check_cluster_output_numerics", "clustering_bridge_v1", "compile_on_demand",
    "deterministic_cluster_names", "disable_constant_folding", "disable_strict_signature_checks",
    "enable_device_api_for_gpu", "enable_lazy_compilation", "enable_xla_devices",
    "functional_import_bridge_v1", "persistent_cache_device_types", "persistent_cache_directory",
    "persistent_cache_prefix", "persistent_cache_read_only", "print_cluster_outputs",
    "use_device_api", "use_device_api_for_auto_jit", "use_device_api_for_compile_on_demand",
    "use_device_api_for_xla_launch",
])  # fmt: skip
_SINGLE_GPU = re.compile(r"single-gpu\((-?\d+)\)")


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags, by their names without `tf_xla_`; defaults are TensorFlow's."""

    auto_jit: int = 0
    """0: only what is marked to be compiled; 1 and 2: all that can be."""
    min_cluster_size: int = 4
    """Operations that a cluster has at least; constants and identities do not count."""
    max_cluster_size: int = 2**31 - 1
    cpu_global_jit: bool = False
    """Whether `auto_jit` holds for CPUs."""
    clustering_debug: bool = False
    """Whether graphs are dumped, to the folder TF_DUMP_GRAPH_PREFIX."""
    clustering_fuel: int = 2**63 - 1
    """How many nodes may be clustered."""
    ops_to_cluster: str = ""
    """Operations and groups (PW, RED, MISC, FUSIBLE, …), by commas; empty means all."""
    cluster_exclude_ops: str = ""
    """`Where`, or nothing."""
    disable_deadness_safety_checks_for_debugging: bool = False
    disable_resource_variable_safety_checks_for_debugging: bool = False

    @property
    def allowed(self) -> frozenset[str]:
        """The operations of `ops_to_cluster`. Raises `HloError` HLO0631 for one that XLA does not know."""
        known = table()
        result: set[str] = set()
        for name in filter(None, self.ops_to_cluster.split(",")):
            if name not in known.groups and name not in known.ops:
                message = f"--tf_xla_ops_to_cluster: XLA has no operation '{name}'"
                raise error(
                    "HLO0631", message, help=f"groups are {', '.join(sorted(known.groups))}"
                )
            result |= known.groups.get(name, {name})
        return frozenset(result)


def parse_flags(text: str, defaults: Flags | None = None) -> Flags:
    """The flags in a text as TF_XLA_FLAGS has it. Raises `HloError` HLO0631 for unknown ones and wrong values."""
    known = {one.name: one for one in fields(Flags)}
    values: dict[str, Any] = {}
    for token in tokenize(text).flags:
        name = token.name.removeprefix(_PREFIX)
        if name in _WITHOUT_EFFECT and token.name != name:
            continue
        if name not in known or token.name == name:
            raise error("HLO0631", f"unknown flag '{token.text}' in TF_XLA_FLAGS")
        if name == "auto_jit" and token.value == "fusible":
            values |= {"auto_jit": 1, "ops_to_cluster": "FUSIBLE"}
            continue
        values[name] = _value(str(known[name].type), token.value, token.text)
    if values.get("cluster_exclude_ops") not in (None, "", "Where"):
        raise error("HLO0631", "--tf_xla_cluster_exclude_ops takes only 'Where'")
    return replace(defaults or Flags(), **values)


def _value(kind: str, text: str | None, flag: str) -> Any:
    if kind == "str":
        return text or ""
    if kind == "bool" and text in (None, "", "true", "True", "1"):
        return True
    if kind == "bool" and text in ("false", "False", "0"):
        return False
    if kind == "int" and text is not None:
        if _SINGLE_GPU.fullmatch(text):
            return 0  # graphs with one GPU only
        if re.fullmatch(r"-?\d+", text):
            return int(text)
    raise error("HLO0631", f"'{flag}' in TF_XLA_FLAGS is no {kind}")


def environment_flags(
    defaults: Flags | None = None, environ: Mapping[str, str] = os.environ
) -> Flags:
    """The flags of TF_XLA_FLAGS over `defaults`. Raises as `parse_flags`."""
    return parse_flags(environ.get("TF_XLA_FLAGS", ""), defaults)
