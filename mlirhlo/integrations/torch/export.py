"""Models of a running PyTorch, exported and taken over; needs torch and torch_xla."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlirhlo.diagnostics import error
from mlirhlo.integrations.optional import require
from mlirhlo.integrations.torch.bundles import Bundle, bundle_of, method_of
from mlirhlo.runtime.programs import platform_named


def export(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    platform: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Bundle:
    """A `torch.nn.Module` (or what `torch.export.export` made of one) as a bundle in memory.

    `args`, `kwargs`: examples of the arguments; not needed for an exported program. `platform`, `options`:
    as in `load`. Raises
    `HloError`: HLO0600 without torch or torch_xla, HLO0609 when PyTorch cannot export the model.
    """
    platform = platform_named(platform)
    torch = require("torch", "torch", "mlirhlo.torch.export")
    stablehlo = require("torch_xla.stablehlo", "torch", "mlirhlo.torch.export")
    try:
        program = model
        if isinstance(model, torch.nn.Module):
            program = torch.export.export(model, tuple(args), dict(kwargs or {}))
        bundle = stablehlo.exported_program_to_stablehlo(program)._bundle
    except Exception as problem:  # PyTorch reports by many types
        first = str(problem).strip().split("\n")[0]
        raise error(
            "HLO0609",
            f"PyTorch cannot export the model: {type(problem).__name__}: {first}",
            help="torch.export.export(model, args) alone shows all it has to say",
        ) from problem
    metas = [
        json.loads(json.dumps(one.meta, cls=stablehlo.StableHLOJSONSerializer))
        for one in bundle.stablehlo_funcs
    ]
    weights = dict(bundle.state_dict)
    constants = list(bundle.additional_constants)
    methods = [
        method_of(meta, one.bytecode, weights, constants, meta["name"])
        for meta, one in zip(metas, bundle.stablehlo_funcs, strict=True)
    ]
    return bundle_of(methods, weights, platform, options)
