"""The context that reads kernels of single threads in files of the stage `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, Operation, TypeAttribute

from mlirhlo.dialects.tpu.op_classes import class_of


class KernelContext(Context):
    """A context that also knows the operations with a row in Mosaic's tables, which kernels that JAX wrote consist of.

    Attributes and types of dialects that are not registered keep the text they are spelled with.
    """

    def get_optional_op(
        self, name: str, *, dialect_stack: Sequence[str] = ()
    ) -> type[Operation] | None:
        """The class of an operation; None where neither a dialect nor a row has it."""
        return super().get_optional_op(name, dialect_stack=dialect_stack) or class_of(name)

    def get_optional_attr(self, name: str) -> type[Attribute]:
        """The class of an attribute."""
        known = super().get_optional_attr(name)
        if known is None:
            known = self._loaded_attrs[name] = UnregisteredAttr.with_name_and_type(name, False)
        return known

    def get_optional_type(self, name: str) -> type[TypeAttribute]:
        """The class of a type."""
        known = super().get_optional_type(name)
        if known is None:
            known = self._loaded_types[name] = cast(
                "type[TypeAttribute]", UnregisteredAttr.with_name_and_type(name, True)
            )
        return known
