"""A module under the names that JAX's own objects have: `XlaComputation` and `HloModule` of jaxlib."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo import Module
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import graph
    from mlirhlo.formats import hlo_text
    from mlirhlo.formats import proto as formats_proto


if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
    from mlirhlo.dialects.hlo.ops import ComputationOp
    from mlirhlo.dialects.hlo.shapes import Shape
    from mlirhlo.formats.hlo_text import PrintOptions
    from mlirhlo.formats.proto.module_pb2 import HloModuleProto
    from mlirhlo.formats.proto.sharding_pb2 import OpSharding


class CallableName(str):
    """A name that is also a function without arguments, as `XlaComputation.name` is."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """Shapes of the parameters and of the result."""

    _layout: ProgramLayout

    def parameter_shapes(self) -> list[Shape]:
        """Shapes of the parameters in order."""
        return list(self._layout.parameters)

    def result_shape(self) -> Shape:
        """Shape of the result."""
        return self._layout.result

    def __repr__(self) -> str:
        parameters = ", ".join(
            f"p{number}: {shape.to_string(layout=False)}"
            for number, shape in enumerate(self._layout.parameters)
        )
        return f"({parameters}) -> {self._layout.result.to_string(layout=False)}"


class XlaComputation(Module):
    """A `mlirhlo.Module` with the methods of jaxlib's `XlaComputation` and `HloModule`."""

    __slots__ = ()

    @property
    def name(self) -> CallableName:
        """Name of the module; `name()` is the same."""
        return CallableName(self.hlo.name)

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        """HLO text in the form that JAX prints."""
        from dataclasses import replace

        options = replace(
            hlo_text.PrintOptions.short_parsable(), large_constants=print_large_constants
        )
        return self.as_text("hlo", options)

    def to_string(self, options: PrintOptions | None = None) -> str:
        """HLO text; without options as `--xla_dump_to` writes it."""
        return self.as_text("hlo", hlo_text.PrintOptions() if options is None else options)

    def as_serialized_hlo_module_proto(self) -> bytes:
        """The module as a serialised HloModuleProto."""
        return self._proto().SerializeToString(deterministic=True)

    def _proto(self) -> HloModuleProto:
        return formats_proto.encode_module(self.op, keep_config=False)

    def as_hlo_dot_graph(self) -> str:
        """The graph of the entry computation in Graphviz' language."""
        return graph.render(self.op, "dot")

    def as_hlo_module(self) -> XlaComputation:
        """The module itself, which has the methods of `HloModule`."""
        return self

    get_hlo_module = as_hlo_module

    def hash(self) -> int:
        """A number of 64 bits; equal for modules that print the same."""
        digest = hashlib.sha256(self.as_hlo_text(print_large_constants=True).encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def program_shape(self) -> ProgramShape:
        """Shapes of the parameters and of the result."""
        return ProgramShape(self.hlo.entry_signature)

    def computations(self) -> list[ComputationOp]:
        """All computations, in order."""
        return list(self.hlo.computations)

    def make_nonfusion_computations(self) -> list[ComputationOp]:
        """The computations that no fusion calls."""
        fused = self.hlo.fused_computations()
        return [c for c in self.computations() if c.computation_name not in fused]

    @property
    def spmd_output_sharding(self) -> OpSharding | None:
        """Sharding of the result that a partitioned module keeps."""
        proto = self._proto()
        return proto.spmd_output_sharding if proto.HasField("spmd_output_sharding") else None

    @property
    def spmd_parameters_shardings(self) -> list[OpSharding] | None:
        """Shardings of the parameters that a partitioned module keeps."""
        return list(self._proto().spmd_parameters_shardings) or None
