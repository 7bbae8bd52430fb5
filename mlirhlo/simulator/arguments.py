"""Arguments of a kernel as text: `f32[1024]:random`, `1024`, `0.5`, a tensor map of an array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.simulator.lanes import Array
from mlirhlo.simulator.machine import Machine
from mlirhlo.simulator.tensor_map import TensorMap

_ARRAY = re.compile(r"(\w+)\[([\d,\s]*)\](?::(.+))?")
_MAP = re.compile(r"map\((\d+)((?:\s*,\s*\w+=[\dx]+)*)\)")

FORMS = "f32[1024]:random, f32[4,4]:zeros, s32[16]:iota, f32[8]:x.npy, f32[8], 1024, 0.5, map(0,box=64x8,swizzle=128)"
"""What an argument may be, for help and messages."""


@dataclass(slots=True)
class Argument:
    """One argument, as the device gets it."""

    text: str
    value: int | float | bytes
    array: Array | None = None
    """What the array held before the launch."""
    is_new: bool = False
    """Whether the kernel has to fill it."""


def read_arguments(texts: Sequence[str], machine: Machine, seed: int) -> list[Argument]:
    """Allocates and fills the arrays. Raises `HloError` HLO0788 for text that is no argument."""
    random = np.random.default_rng(seed)
    arguments = list[Argument]()
    for number, text in enumerate(texts):
        if (match := _MAP.fullmatch(text)) is not None:
            arguments.append(Argument(text, _tensor_map(match, arguments, text)))
        elif (match := _ARRAY.fullmatch(text)) is not None:
            arguments.append(_array(match, text, number, machine, random))
        else:
            arguments.append(Argument(text, _number(text)))
    return arguments


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise _wrong(text) from None


def _wrong(text: str) -> Exception:
    return error("HLO0788", f"{text!r} is no argument of a kernel", help=f"write {FORMS}")


def _array(
    match: re.Match[str], text: str, number: int, machine: Machine, random: np.random.Generator
) -> Argument:
    kind = PRIMITIVE_TYPES.get(match[1])
    if kind is None or not kind.is_array:
        raise _wrong(text)
    shape = tuple(int(one) for one in match[2].split(",") if one.strip())
    values = _values(match[3] or "", kind, shape, random, text)
    array: Array = np.zeros(shape, kind.dtype) if values is None else values.astype(kind.dtype)
    address = machine.allocate(max(array.nbytes, 1), f"argument {number}")
    if values is not None and array.nbytes:
        machine.write(address, array)
    return Argument(text, address, array, is_new=values is None)


def _values(
    fill: str, kind: Any, shape: tuple[int, ...], random: np.random.Generator, text: str
) -> Array | None:
    count = int(np.prod(shape))
    match fill:
        case "":
            return None
        case "random" if kind.is_float:
            return random.normal(size=shape)
        case "random":
            return random.integers(0, 8 if kind.bits > 3 else 2, shape)
        case "zeros" | "ones":
            return np.full(shape, int(fill == "ones"))
        case "iota":
            return np.arange(count).reshape(shape)
        case _ if fill.endswith(".npy"):
            try:
                loaded: Array = np.load(fill, allow_pickle=False)
            except (OSError, ValueError) as problem:
                raise error("HLO0788", f"{text!r}: {problem}") from None
            if loaded.size != count:
                raise error("HLO0788", f"{text!r}: {fill} has {loaded.size} elements")
            return loaded.reshape(shape)
        case _:
            raise _wrong(text)


def _tensor_map(match: re.Match[str], arguments: Sequence[Argument], text: str) -> bytes:
    number = int(match[1])
    if number >= len(arguments) or arguments[number].array is None:
        raise error("HLO0788", f"{text!r}: argument {number} is no array before it")
    of = arguments[number]
    array = of.array
    assert array is not None
    assert isinstance(of.value, int)
    options = dict(one.strip().split("=") for one in match[2].split(",") if one.strip())
    box = tuple(int(one) for one in options.pop("box", "").split("x") if one)
    swizzle = int(options.pop("swizzle", "0"))
    if options or len(box) != array.ndim:
        raise _wrong(text)
    dimensions = array.shape[::-1]
    strides = tuple(int(np.prod(dimensions[:dim])) * array.itemsize for dim in range(1, array.ndim))
    return TensorMap(of.value, array.itemsize, dimensions, strides, box[::-1], swizzle).encode()


def summary(argument: Argument, number: int, after: Array) -> str:
    """One line about an array after the launch."""
    name = argument.text.partition(":")[0]
    if not after.size:
        return f"argument {number}: {name}  empty"
    wide = after.astype(np.float64)
    return (
        f"argument {number}: {name}  least {wide.min():.6g}  mean {wide.mean():.6g}  "
        f"greatest {wide.max():.6g}"
    )
