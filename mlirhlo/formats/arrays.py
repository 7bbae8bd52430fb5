"""Arrays of a run in `.npz` files: `in0`, `in1`, … and `out0`, `out1`, …

Numbers follow the entry's parameters and the result, tuples flattened depth first, tokens left out;
`in0.p3` is the part of partition 3. Types that numpy lacks stand as bit patterns of their width
(bf16 as uint16, f8 as uint8), integers below a byte as one value per byte, pred as bool; ml_dtypes'
own arrays are taken too. `meta` is JSON: type names and shapes of all `in` and `out`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, TokenShape, leaves
from mlirhlo.formats import read_file, write_file

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Archive:
    """What an `.npz` file holds, as stored."""

    name: str
    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]
    """The `meta` entry, empty when there is none."""

    @property
    def partitions(self) -> int:
        """Partitions that the arrays are for; 1 when there are no parts."""
        numbers = [int(p) for key in self.arrays if (p := key.rpartition(".p")[2]).isdigit()]
        return max(numbers, default=0) + 1

    def leaves(self, prefix: str, shapes: Sequence[Shape], partition: int | None) -> list[Array]:
        """Arrays `prefix0`, `prefix1`, … as the leaves of `shapes`, in native types; those of a
        partition, or (None) the whole ones. Raises `HloError` HLO0506."""
        wanted = [leaf for shape in shapes for leaf in array_leaves(shape)]
        found: list[Array] = []
        for number, shape in enumerate(wanted):
            array = self._find(prefix, number, partition, len(wanted))
            found.append(self._decoded(array, shape, f"{prefix}{number}"))
        extra = f"{prefix}{len(wanted)}"
        if extra in self.arrays:
            raise self._problem(f"it holds {extra}, but only {len(wanted)} arrays are wanted")
        return found

    def fits(self, prefix: str, shapes: Sequence[Shape], partition: int | None) -> bool:
        """Whether `leaves` would find arrays of the right sizes and types."""
        try:
            self.leaves(prefix, shapes, partition)
        except HloError:
            return False
        return True

    def _find(self, prefix: str, number: int, partition: int | None, count: int) -> Array:
        names = [f"{prefix}{number}"]
        if partition is not None:
            names.insert(0, f"{names[0]}.p{partition}")
        if prefix == "in":
            # What numpy.savez(path, a, b) writes.
            names.append(f"arr_{number}")
        for name in names:
            if name in self.arrays:
                return self.arrays[name]
        there = ", ".join(sorted(self.arrays)[:8]) or "nothing"
        raise self._problem(
            f"no array '{names[0]}'; {count} are wanted and the file holds {there}",
            help=f"name the arrays {prefix}0, {prefix}1, … in order, tuples flattened",
        )

    def _decoded(self, array: Array, shape: ArrayShape, what: str) -> Array:
        fits = len(array.shape) == shape.rank and all(
            size == bound or bound < 0 or (shape.is_dynamic_dimension(dim) and size <= bound)
            for dim, (size, bound) in enumerate(zip(array.shape, shape.dimensions, strict=True))
        )
        result = decode(array, shape.element_type) if fits else None
        if result is not None:
            return result
        can_be = decode(np.zeros((0,), array.dtype), shape.element_type) is not None
        advice = "the sizes differ: is the file for another module?" if can_be else None
        sizes = ",".join(map(str, array.shape))
        wanted = shape.to_string(layout=False)
        raise self._problem(
            f"{what} is {array.dtype}[{sizes}], but {wanted} is wanted",
            help=advice or _how_to_store(shape.element_type),
        )

    def _problem(self, message: str, help: str | None = None) -> HloError:
        return error("HLO0506", message, Place(self.name), help)


def array_leaves(shape: Shape) -> list[ArrayShape]:
    """The arrays in a shape, depth first; buffers count as their array."""
    found: list[ArrayShape] = []
    for _, leaf in leaves(shape):
        if isinstance(leaf, ArrayShape):
            found.append(leaf)
        elif isinstance(leaf, BufferShape):
            found.append(leaf.element)
        elif not isinstance(leaf, TokenShape):
            raise error("HLO0506", f"a value of {leaf} cannot stand in an npz file")
    return found


def read_npz(path: str) -> Archive:
    """Reads a file. Raises `HloError`: HLO0503 when it cannot be read, HLO0506 when it is no npz."""
    data, _ = read_file(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            arrays = {name.removesuffix(".npy"): _member(file, name) for name in file.namelist()}
        meta: object = json.loads(str(arrays.pop("meta"))) if "meta" in arrays else {}
    except (ValueError, OSError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as problem:
        raise error(
            "HLO0506",
            f"not an npz file of plain arrays: {problem}",
            Place(path),
            help="numpy.savez(path, in0=a, in1=b) writes one",
        ) from None
    return Archive(path, arrays, cast("dict[str, Any]", meta) if isinstance(meta, dict) else {})


def _member(file: zipfile.ZipFile, name: str) -> Array:
    data = file.read(name)
    # numpy writes ml_dtypes' f8e5m2 under a type name that it cannot read.
    if b"'<f1'" in data[:128]:
        data = data[:128].replace(b"'<f1'", b"'|V1'") + data[128:]
    return cast(Array, np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))


def decode(array: Array, element_type: PrimitiveType) -> Array | None:
    """A stored array in the native type of `element_type`; None when it cannot be one."""
    native = element_type.dtype
    stored = array.dtype
    if stored == native:
        return array
    if element_type.kind is Kind.PRED:
        return array.astype(np.bool_) if stored == np.uint8 else None
    if element_type.is_integer and element_type.bits < 8:
        if stored.kind not in "iu" or stored.itemsize != 1:
            # As ml_dtypes' arrays come out of a file; one value a byte.
            return array.view(native) if stored == np.dtype("V1") else None
        return array.astype(native)
    if _is_bit_pattern(stored, native):
        return np.ascontiguousarray(array).view(native).reshape(array.shape)
    return None


def _is_bit_pattern(stored: np.dtype[Any], native: np.dtype[Any]) -> bool:
    return stored.itemsize == native.itemsize and stored.kind in "uV" and native.isbuiltin != 1


def encode(array: Array) -> Array:
    """An array in a type that numpy itself can store; see the head of this file."""
    if array.dtype.isbuiltin == 1:
        return array
    name = array.dtype.name
    if name.startswith(("int", "uint")):
        return array.astype(np.int8 if name.startswith("int") else np.uint8)
    stored = np.dtype(f"u{array.dtype.itemsize}")
    return np.ascontiguousarray(array).view(stored).reshape(array.shape)


def write_npz(path: str, prefix: str, parts: Sequence[Sequence[Array]], shape: Shape) -> None:
    """Writes the leaves of a result: `parts[partition][number]`, `shape` being the result's.

    With one partition the arrays are `out0`, `out1`, …; with more also `out0.p1`, …
    Raises `HloError` HLO0503 when the file cannot be written.
    """
    write_run(path, {prefix: (parts, shape)})


def write_run(path: str, sides: Mapping[str, tuple[Sequence[Sequence[Array]], Shape]]) -> None:
    """Writes arrays of several prefixes, `in` and `out`, to one file; each as `write_npz` has it."""
    stored: dict[str, Array] = {}
    meta: dict[str, Any] = {}
    for prefix, (parts, shape) in sides.items():
        kinds = [leaf.element_type.name for leaf in array_leaves(shape)]
        rows = [
            {"dtype": kind, "shape": list(array.shape)}
            for kind, array in zip(kinds, parts[0], strict=True)
        ]
        for number in range(len(rows)):
            if len(parts) == 1:
                stored[f"{prefix}{number}"] = encode(parts[0][number])
                continue
            for partition, values in enumerate(parts):
                stored[f"{prefix}{number}.p{partition}"] = encode(values[number])
        meta[prefix] = rows
        if len(parts) > 1:
            meta["partitions"] = len(parts)
    stored["meta"] = np.array(json.dumps(meta, sort_keys=True))
    buffer = io.BytesIO()
    save: Any = np.savez
    save(buffer, **stored)
    write_file(path, buffer.getvalue())


def _how_to_store(type_: PrimitiveType) -> str:
    if type_.kind is Kind.PRED:
        return "store pred as bool"
    if type_.dtype.isbuiltin == 1:
        return f"store {type_} as numpy.{type_.dtype.name}"
    if type_.is_integer:
        return f"store {type_} as {'int8' if type_.is_signed else 'uint8'} values, one per byte"
    return f"store {type_} as uint{8 * type_.byte_size} bit patterns, or as ml_dtypes.{type_.dtype.name}"
