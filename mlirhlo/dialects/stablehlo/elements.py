"""Dense constants: `dense<…> : tensor<2x3xf32>` and the numpy arrays they stand for.

The elements are kept as numpy would lay them out, one byte at least for each; a constant whose
elements are all equal keeps one. Large ones never become Python numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.stablehlo.float_text import float_text, format_of, hex_text, text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DenseAttr", "Elements", "array_of", "dense", "dtype_of", "element_texts", "float_text"]

HEX_LIMIT = 100
"""Constants of more elements are printed as one hexadecimal string."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a dense constant."""

    type: Attribute
    """A tensor or vector type of static shape."""
    raw: bytes
    """The elements as numpy lays them out, little endian; a single one if all are equal."""
    is_splat: bool
    """Whether `raw` holds one element for all."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return shape_of(self.type)

    @property
    def element_type(self) -> Attribute:
        """Element type of `type`; the storage type of quantized ones is in `dtype_of`."""
        return cast("TensorType[Attribute]", self.type).element_type


@irdl_attr_definition
class DenseAttr(Data[Elements], BuiltinAttribute):
    """`dense<…> : tensor<…>`."""

    name = "builtin.dense_elements"

    @property
    def type(self) -> Attribute:
        """The tensor type."""
        return self.data.type

    def get_type(self) -> Attribute:
        """The tensor type."""
        return self.data.type

    def array(self) -> NDArray[Any]:
        """As `array_of`."""
        return array_of(self)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Elements:
        """Not used: `dense<…>` is syntax of the builtin dialect."""
        parser.raise_error("write dense<…> : tensor<…>")

    def print_parameter(self, printer: Printer) -> None:
        """Not used: `print_builtin` is."""
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        """Prints `dense<…> : type`."""
        printer.print_string(self.literal())
        printer.print_string(" : ")
        printer.print_attribute(self.data.type)

    def literal(self) -> str:
        """`dense<…>` without the type."""
        known = self.__dict__.get("_literal")
        if known is None:
            known = f"dense<{_body(self)}>"
            if len(known) < 1024:
                object.__setattr__(self, "_literal", known)
        return cast(str, known)


def integer_width(type_: Attribute) -> int:
    """Bits of an integer type, else 0."""
    return cast("IntegerType[Any, Any]", type_).width.data if isinstance(type_, IntegerType) else 0


def is_unsigned(type_: Attribute) -> bool:
    """Whether a type is an integer type without sign."""
    if not isinstance(type_, IntegerType):
        return False
    return cast("IntegerType[Any, Any]", type_).signedness.data is Signedness.UNSIGNED


def element_type_of(type_: Attribute) -> Attribute:
    """Element type of a tensor or vector type."""
    return cast("TensorType[Attribute]", type_).element_type


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Sizes of a tensor or vector type."""
    known = type_.__dict__.get("_sizes")
    if known is None:
        known = tuple(d.data for d in cast("TensorType[Attribute]", type_).shape.data)
        object.__setattr__(type_, "_sizes", known)
    return cast("tuple[int, ...]", known)


@lru_cache(maxsize=1024)
def dtype_of(element_type: Attribute) -> np.dtype[Any]:
    """The numpy dtype of an element type; of quantized types, that of what is stored.

    Raises `HloError` HLO0036 for types no dense constant of ours has.
    """
    import numpy as np

    known = BY_MLIR.get(element_type)
    if known is not None and known.is_array:
        return known.dtype
    match element_type:
        case IndexType():
            return np.dtype(np.int64)
        case IntegerType() if element_type.width.data <= 64:
            signed = element_type.signedness.data is not Signedness.UNSIGNED
            width = max(1, 1 << max(3, (element_type.width.data - 1).bit_length()))
            if element_type.width.data in (1, 2, 4) and not signed:
                import ml_dtypes

                name = f"uint{element_type.width.data}"
                return np.dtype(getattr(ml_dtypes, name, np.uint8))
            if element_type.width.data in (2, 4):
                import ml_dtypes

                small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, f"int{element_type.width.data}"))
                return small
            return np.dtype(f"{'i' if signed else 'u'}{width // 8}")
        case _:
            storage = getattr(element_type, "storage_type", None)
            if isinstance(storage, Attribute):
                return dtype_of(storage)
    raise error("HLO0036", f"no dense constants of {element_type} are read or written here")


def dense(array: NDArray[Any] | object, type: Attribute) -> DenseAttr:
    """The constant of `array` (or of one number for all) with the tensor type `type`.

    Elements are cast to the element type. Raises `HloError` HLO0036 when the shapes differ.
    """
    import numpy as np

    shape = shape_of(type)
    dtype = dtype_of(cast("TensorType[Attribute]", type).element_type)
    values = np.asarray(array)
    if values.dtype != dtype:
        values = values.astype(dtype)
    if values.ndim == 0 and shape:
        return DenseAttr(
            Elements(type, values.tobytes() if prod(shape) else b"", bool(prod(shape)))
        )
    if values.shape != shape:
        raise error("HLO0036", f"an array of shape {list(values.shape)} is no {type}")
    return from_raw(type, values)


def from_raw(type: Attribute, values: NDArray[Any]) -> DenseAttr:
    """The constant of `values`, whose dtype is that of `type`; any shape of the right size."""
    import numpy as np

    size = values.dtype.itemsize
    flat = np.ascontiguousarray(values).reshape(-1)
    count = flat.size
    if count == 0:
        return DenseAttr(Elements(type, b"", False))
    octets = flat.view(np.uint8).reshape(count, size)
    if count == 1 or (bool((octets[-1] == octets[0]).all()) and bool((octets == octets[0]).all())):
        return DenseAttr(Elements(type, octets[0].tobytes(), True))
    return DenseAttr(Elements(type, flat.tobytes(), False))


def array_of(attribute: Attribute) -> NDArray[Any]:
    """The elements of a dense constant or dense array, read-only, in the shape of its type.

    Element types without a numpy type of their own come as ml_dtypes. Raises `HloError` HLO0037 for
    constants whose elements are not in the text (`dense_resource<__elided__>`).
    """
    import numpy as np

    match attribute:
        case DenseAttr():
            data = attribute.data
            dtype = dtype_of(data.element_type)
            flat = np.frombuffer(data.raw, dtype)
            if data.is_splat:
                return np.broadcast_to(flat.reshape(()), data.shape)
            return flat.reshape(data.shape)
        case DenseArrayBase():
            dtype = dtype_of(attribute.elt_type)
            array = np.frombuffer(attribute.data.data, dtype)
            array.flags.writeable = False
            return array
        case DenseIntOrFPElementsAttr():
            return _array_of_xdsl(attribute)
        case _:
            raise error("HLO0037", f"the elements of {str(attribute)[:60]} are not in the text")


def _array_of_xdsl(attribute: DenseIntOrFPElementsAttr[Any]) -> NDArray[Any]:
    import numpy as np

    element_type = attribute.get_element_type()
    shape = shape_of(attribute.type)
    dtype = dtype_of(element_type)
    if isinstance(element_type, ComplexType) or BY_MLIR.get(element_type) is None:
        values: list[Any] = list(attribute.iter_values())
        if isinstance(element_type, ComplexType):
            values = [complex(*v) for v in values]
        return np.array(values, dtype).reshape(shape)
    width = integer_width(element_type)
    if 0 < width < 8:
        mask = (1 << width) - 1
        values = [int(cast(int, v)) & mask for v in attribute.iter_values()]
        if dtype == np.bool_:
            return np.array(values, np.uint8).astype(bool).reshape(shape)
        return np.array(values, np.uint8).astype(np.int8).astype(dtype).reshape(shape)
    return np.frombuffer(attribute.data.data, dtype).reshape(shape)


def to_xdsl(attribute: DenseAttr) -> Attribute:
    """The same constant as xDSL's own attribute, for ops of xDSL. Long ones are better kept."""
    array = array_of(attribute)
    values: list[Any] = array.reshape(-1).tolist()
    if array.dtype.kind == "c":
        values = [(v.real, v.imag) for v in values]
    type_: Any = attribute.type
    if not values:
        from xdsl.dialects.builtin import BytesAttr

        return DenseIntOrFPElementsAttr(type_, BytesAttr(b""))
    return DenseIntOrFPElementsAttr.from_list(type_, values)


# ---------------------------------------------------------------- spelling


def _body(attribute: DenseAttr) -> str:
    data = attribute.data
    if not data.raw:
        return ""
    if data.is_splat:
        return element_texts(data)[0]
    if prod(data.shape) > HEX_LIMIT:
        return f'"0x{hex_bytes(data).hex().upper()}"'
    return _nested(element_texts(data), data.shape)


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    for size in reversed(shape[1:]):
        texts = [
            f"[{', '.join(texts[begin : begin + size])}]" for begin in range(0, len(texts), size)
        ]
    return f"[{', '.join(texts)}]" if shape else texts[0]


def hex_bytes(data: Elements) -> bytes:
    """The elements as they stand in a hexadecimal string: a byte at least for each."""
    return data.raw


def element_texts(data: Elements) -> list[str]:
    """Each stored element as MLIR prints it."""
    import numpy as np

    element_type = data.element_type
    flat = np.frombuffer(data.raw, dtype_of(element_type))
    if integer_width(element_type) == 1:
        return ["true" if v else "false" for v in (flat.view(np.uint8) & 1).tolist()]
    if flat.dtype.kind == "c":
        parts = _float_texts(flat.view(np.dtype(f"f{flat.dtype.itemsize // 2}")))
        return [f"({a},{b})" for a, b in zip(parts[::2], parts[1::2], strict=True)]
    if _is_float(flat.dtype):
        return _float_texts(flat)
    return [str(int(v)) for v in flat]


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _float_texts(flat: NDArray[Any]) -> list[str]:
    import numpy as np

    format_ = format_of(flat.dtype)
    bits = flat.view(np.dtype(f"u{flat.dtype.itemsize}")).tolist()
    known: dict[int, str] = {}
    texts: list[str] = []
    for value, pattern in zip(flat.astype(np.float64).tolist(), bits, strict=True):
        text = known.get(pattern)
        if text is None:
            text = known[pattern] = text_of(value, pattern, format_)
        texts.append(text)
    return texts


def is_vector_or_tensor(type_: Attribute) -> bool:
    """Whether dense constants may have this type."""
    return isinstance(type_, TensorType | VectorType)


__all__ += [
    "element_type_of",
    "from_raw",
    "hex_bytes",
    "hex_text",
    "integer_width",
    "is_unsigned",
    "is_vector_or_tensor",
    "shape_of",
]
