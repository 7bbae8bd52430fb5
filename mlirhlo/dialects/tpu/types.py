"""Types of the `tpu` dialect."""

from __future__ import annotations

from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class SemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!tpu.semaphore`: a counter; element of memrefs only."""

    name = "tpu.semaphore"


@irdl_attr_definition
class DmaSemaphoreType(ParametrizedAttribute, TypeAttribute):
    """`!tpu.dma_semaphore`: counts bytes that copies have moved; element of memrefs only."""

    name = "tpu.dma_semaphore"


@irdl_attr_definition
class Float8ExmyType(ParametrizedAttribute, TypeAttribute):
    """`!tpu.float8_exmy<T>`: a float of fewer than eight bits in the low bits of a byte."""

    name = "tpu.float8_exmy"
    underlying: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Reads `<type>`."""
        with parser.in_angle_brackets():
            return [parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        """Prints `<type>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.underlying)
