"""Stages of the kernels inside a program: a context of files for every `tpu_custom_call` and `mosaic_gpu_v2`.

Source: mosaic reference, "The pass pipeline and its dumps": one context a call of the module that is
compiled, whether or not two calls have one body.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.interp.custom_calls import options as custom_calls_options
    from mlirhlo.mosaic import attributes, decode
    from mlirhlo.mosaic.gpu import custom_call
    from mlirhlo.mosaic.pipeline import dumps


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import DebugOptions

TARGET, GPU_TARGET = "tpu_custom_call", "mosaic_gpu_v2"
_NUMBER = re.compile(r"\.\d+\Z")


def dump_kernels(module: ModuleOp, options: DebugOptions) -> None:
    """Writes the stages of every kernel that an HLO module calls, where `--xla_mosaic_dump_to` asks.

    Files are called after the kernel's module; after the call (`%mm.1`: `mm`) where that has no name,
    as JAX's have none. Raises `HloError` HLO0700 for bodies that cannot be read, HLO0752 for a folder
    that cannot be written.
    """
    folder = options.xla_mosaic_dump_to
    if not folder:
        return
    calls = [
        op
        for op in HloModule(module).instructions_of(CustomCallOp)
        if cast(CustomCallOp, op).custom_call_target in (TARGET, GPU_TARGET)
    ]
    if not calls:
        return

    for call in calls:
        title = _NUMBER.sub("", call.instruction_name or "")
        if cast(CustomCallOp, call).custom_call_target == GPU_TARGET:
            custom_call.kernel_of(cast(CustomCallOp, call)).dump(folder)
            continue
        config = decode.config_of(custom_calls_options.options_of(call), title or "kernel")
        kernel = decode.read_kernel(config.body, f"<kernel {title}>")
        dumps.dump_stages(
            kernel,
            folder,
            name=dumps.safe_name(attributes.string_of(kernel, "sym_name") or title) or None,
            debug_info=options.xla_mosaic_enable_dump_debug_info,
        )
