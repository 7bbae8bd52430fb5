"""Stages of the kernels inside a program: a context of files for every `tpu_custom_call` and `mosaic_gpu_v2`.

Source: mosaic reference, "The pass pipeline and its dumps": one context a call of the module that is
compiled, whether or not two calls have one body.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp

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
    from mlirhlo.interp.custom_calls.options import options_of
    from mlirhlo.mosaic.attributes import string_of
    from mlirhlo.mosaic.decode import config_of, read_kernel
    from mlirhlo.mosaic.pipeline.dumps import dump_stages, safe_name

    for call in calls:
        title = _NUMBER.sub("", call.instruction_name or "")
        if cast(CustomCallOp, call).custom_call_target == GPU_TARGET:
            from mlirhlo.mosaic.gpu.custom_call import kernel_of

            kernel_of(cast(CustomCallOp, call)).dump(folder)
            continue
        config = config_of(options_of(call), title or "kernel")
        kernel = read_kernel(config.body, f"<kernel {title}>")
        dump_stages(
            kernel,
            folder,
            name=safe_name(string_of(kernel, "sym_name") or title) or None,
            debug_info=options.xla_mosaic_enable_dump_debug_info,
        )
