"""The pipeline of kernels: the TPU compiler's stages on our IR, their dumps, our schedule."""

from __future__ import annotations

from mlirhlo.mosaic.pipeline.dumps import StageDump, dump_stages
from mlirhlo.mosaic.pipeline.stages import STAGES, Stage, run_pipeline, stage_named

__all__ = ["STAGES", "Stage", "StageDump", "dump_stages", "run_pipeline", "stage_named"]
