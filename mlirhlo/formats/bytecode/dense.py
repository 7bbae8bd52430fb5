"""Dense elements: MLIR's raw buffers and the attributes that hold them.

MLIR's buffer has the elements little-endian at their size rounded up to whole bytes, one element
where all are the same, and i1 packed to bits (a splat as 0x00 or 0xFF). `DenseAttr` holds the same,
but i1 as a byte each.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.stablehlo.elements import DenseAttr, Elements


class BadElements(Exception):
    """The buffer does not fit its type."""


def element_count(shaped: Attribute) -> int:
    """Number of elements of a static shaped type. Raises `BadElements`."""
    if not isinstance(shaped, builtin.TensorType | builtin.VectorType | builtin.MemRefType):
        raise BadElements(f"{shaped} holds no dense elements")
    count = 1
    for size in shaped.get_shape():
        if size < 0:
            raise BadElements(f"{shaped} has no fixed size")
        count *= size
    return count


def element_bits(element: Attribute) -> int:
    """Width of one element. Raises `BadElements`."""
    if isinstance(element, builtin.ComplexType):
        return 16 * element_size(cast("Attribute", cast("Any", element).element_type))
    if isinstance(element, builtin.IndexType):
        return 64
    storage = getattr(element, "storage_type", None)  # of quantized types
    if isinstance(storage, Attribute):
        return element_bits(storage)
    bits = getattr(element, "bitwidth", None)
    if not isinstance(bits, int) or not bits:
        raise BadElements(f"{element} is no element type of dense elements")
    return bits


def element_size(element: Attribute) -> int:
    """Bytes of one element. Raises `BadElements`."""
    return (element_bits(element) + 7) // 8


def _is_bit(element: Attribute) -> bool:
    return element == builtin.i1


def from_buffer(shaped: Attribute, buffer: bytes) -> DenseAttr:
    """The attribute that MLIR's buffer means. Raises `BadElements`."""
    count = element_count(shaped)
    element = cast("Attribute", cast("Any", shaped).get_element_type())
    size = element_size(element)
    if not count:
        buffer = b""
    elif _is_bit(element):
        buffer = _from_bits(buffer, count)
    elif (bits := element_bits(element)) < 8 and isinstance(element, builtin.IntegerType):
        mask = (1 << bits) - 1
        buffer = buffer.translate(bytes(byte & mask for byte in range(256)))
    is_splat = len(buffer) == size and count > 0
    if not is_splat and len(buffer) != count * size:
        raise BadElements(f"{len(buffer)} bytes do not fill {shaped}")
    return DenseAttr(Elements(shaped, buffer, is_splat))


def _from_bits(buffer: bytes, count: int) -> bytes:
    if len(buffer) == 1 and count > 0:
        if buffer[0] == 0xFF or count == 1:
            return bytes([buffer[0] & 1])
        if buffer[0] == 0 or count > 8:
            return bytes([buffer[0] & 1])
    if len(buffer) == (count + 7) // 8 and len(buffer) != count:
        return unpack_bits(buffer, count)
    return bytes(byte & 1 for byte in buffer)


def unpack_bits(buffer: bytes, count: int) -> bytes:
    """One byte an element from one bit an element, lowest bit first."""
    import numpy as np

    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[:count].tobytes()


def pack_bits(data: bytes) -> bytes:
    """One bit an element from one byte an element, lowest bit first."""
    import numpy as np

    return np.packbits(np.frombuffer(data, np.uint8) & 1, bitorder="little").tobytes()


def raw_of(attribute: Attribute) -> tuple[Attribute, bytes] | None:
    """Type and elements of dense elements, one for a splat, i1 as a byte each; None for others."""
    if isinstance(attribute, DenseAttr):
        return attribute.data.type, attribute.data.raw
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    shaped, data = cast("Attribute", cast("Any", attribute).type), attribute.data.data
    element = cast("Attribute", attribute.get_element_type())
    size = element_size(element)
    count = element_count(shaped)
    is_splat = count > 0 and data == data[:size] * count
    if (bits := element_bits(element)) < 8 and isinstance(element, builtin.IntegerType):
        mask = (1 << bits) - 1
        data = data.translate(bytes(byte & mask for byte in range(256)))
    return shaped, data[:size] if is_splat else data


def to_buffer(shaped: Attribute, raw: bytes) -> bytes:
    """MLIR's buffer of what `raw_of` gives: i1 packed."""
    if not _is_bit(cast("Any", shaped).get_element_type()):
        return raw
    if len(raw) == 1:
        return b"\xff" if raw[0] & 1 else b"\0"
    return pack_bits(raw)
