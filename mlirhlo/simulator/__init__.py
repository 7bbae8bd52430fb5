"""A checking simulator of PTX: kernels run on any machine, lane by lane, with every access judged."""

from mlirhlo.simulator.machine import Machine
from mlirhlo.simulator.report import Figures, LaunchReport, Traffic
from mlirhlo.simulator.tensor_map import TensorMap

__all__ = ["Figures", "LaunchReport", "Machine", "TensorMap", "Traffic"]
