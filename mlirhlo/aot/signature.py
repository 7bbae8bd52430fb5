"""Arguments and results of a module as a C program sees them: leaves with names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mlirhlo.aot.config import Config, Entry
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.lowering.memory_order import physical_order

C_TYPES = {
    "pred": "bool", "f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t",
    "s8": "int8_t", "s16": "int16_t", "s32": "int32_t", "s64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "s2": "int8_t", "s4": "int8_t", "u2": "uint8_t", "u4": "uint8_t", "s1": "int8_t", "u1": "uint8_t",
    "c64": "mlirhlo_c64", "c128": "mlirhlo_c128",
}  # fmt: skip
"""By element type; floats that C has no type for are their bits, in unsigned integers."""

_KEYWORDS = frozenset(
    (
        *("and", "asm", "auto", "bool", "break", "case", "catch", "char", "class"),
        *("const", "continue", "default", "delete", "do", "double", "else", "enum"),
        *("explicit", "extern", "false", "float", "for", "friend", "goto", "if"),
        *("inline", "int", "long", "mutable", "namespace", "new", "not", "operator"),
        *("or", "private", "protected", "public", "register", "return", "short"),
        *("signed", "sizeof", "static", "struct", "switch", "template", "this", "throw"),
        *("true", "try", "typedef", "union", "unsigned", "using", "virtual", "void"),
        *("volatile", "while", "xor", "arena", "pool"),
    )
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array that goes in or comes out."""

    name: str
    """An identifier of C."""
    shape: ArrayShape
    size: int
    """Bytes."""

    @property
    def element(self) -> str:
        """Its element type, as HLO spells it."""
        return self.shape.element_type.name

    @property
    def c_type(self) -> str:
        """The type of its elements in memory."""
        return C_TYPES.get(self.element, "uint8_t")

    @property
    def dimensions(self) -> Sequence[int]:
        return self.shape.dimensions

    @property
    def order(self) -> tuple[int, ...]:
        """Dimensions from major to minor as they lie in memory."""
        return tuple(physical_order(self.shape))

    @property
    def strides(self) -> list[int]:
        """Elements between neighbours along each dimension, as the layout has it."""
        strides = [1] * len(self.dimensions)
        step = 1
        for dim in reversed(self.order):
            strides[dim] = step
            step *= self.dimensions[dim]
        return strides

    @property
    def count(self) -> int:
        """Elements."""
        total = 1
        for size in self.dimensions:
            total *= size
        return total


@dataclass(frozen=True, slots=True)
class Variable:
    """An argument that a TensorFlow graph calls a variable."""

    argument: int
    """Its number."""
    result: int | None
    """The number of the result that is its next value; None where it stays as it is."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What goes in and what comes out, leaf by leaf."""

    arguments: Sequence[Leaf]
    results: Sequence[Leaf]
    variables: Sequence[Variable] = ()


def identifier(text: str) -> str:
    """A name of HLO as an identifier of C: without the number that HLO puts behind it."""
    text = re.sub(r"\W", "_", re.sub(r"(\.\d+)+$", "", text)).strip("_")
    if not text or text[0].isdigit() or text in _KEYWORDS:
        text = f"_{text}".rstrip("_") + ("" if text else "value")
        text = f"v{text}"
    return text


def signature_of(
    module: HloModule,
    parameters: Sequence[ArrayShape],
    results: Sequence[ArrayShape],
    config: Config | None,
    devices: int = 1,
) -> Signature:
    """The leaves of a module's entry, named by a config or else by its parameters.

    `parameters`, `results`: their shapes in memory. `devices`: how many there are with arrays of their own.
    Raises `HloError` HLO0842 for a config that does not fit.
    """
    entry = sorted(module.entry.parameters, key=lambda op: op.parameter_number)
    arguments = [
        name
        for number, op in enumerate(entry)
        for name, _ in _expanded(str(op.instruction_name or f"arg{number}"), op.shape)
    ]
    shape = module.entry.root.shape
    gives = [re.sub(r"^result_", "result", name) for name, _ in _expanded("result", shape)]
    if not isinstance(shape, TupleShape):
        gives = ["result0"]
    variables = [] if config is None else _variables(config)
    if config is not None:
        arguments = _chosen([*config.feeds, *config.variables], arguments, parameters, "feed")
        updates = [replace(v, node=str(n), name=f"{v.name}_updated") for n, v in _updates(config)]
        gives = _chosen([*config.fetches, *updates], gives, results, "fetch")
    taken: set[str] = set()
    return Signature(
        [_leaf(n, s, taken) for n, s in _on_devices(arguments, parameters, devices)],
        [_leaf(n, s, taken) for n, s in _on_devices(gives, results, devices)],
        variables,
    )


def _updates(config: Config) -> Iterator[tuple[int, Entry]]:
    """The variables that are assigned, with the numbers of their next values among the results."""
    assigned = (entry for entry in config.variables if not entry.readonly)
    return enumerate(assigned, len(config.fetches))


def _variables(config: Config) -> list[Variable]:
    results = {entry.node: number for number, entry in _updates(config)}
    for entry in config.variables:
        if not entry.node.isdigit():
            raise error(
                "HLO0842",
                f"variable '{entry.node}': only TensorFlow graphs have variables",
                help="a feed names a parameter of the module",
            )
    return [Variable(int(entry.node), results.get(entry.node)) for entry in config.variables]


def _on_devices(
    names: Sequence[str], shapes: Sequence[ArrayShape], devices: int
) -> Iterator[tuple[str, ArrayShape]]:
    """Names and shapes of the arrays of all devices."""
    for device in range(devices):
        for name, shape in zip(names, shapes, strict=True):
            yield (f"{identifier(name)}_device{device}" if devices > 1 else name), shape


def _leaf(name: str, shape: ArrayShape, taken: set[str]) -> Leaf:
    base = name = identifier(name)
    number = 1
    while name in taken:
        name = f"{base}_{number}"
        number += 1
    taken.add(name)
    return Leaf(name, shape, shape.byte_size)


def _expanded(name: str, shape: Shape) -> list[tuple[str, Shape]]:
    """Names of the arrays in a value: of a tuple numbered ones."""

    def leaves(name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
        if isinstance(shape, TupleShape):
            for number, part in enumerate(shape.elements):
                yield from leaves(f"{name}_{number}", part)
        elif isinstance(shape, ArrayShape):
            yield name, shape

    return list(leaves(re.sub(r"(\.\d+)+$", "", name), shape))


def _chosen(
    entries: Sequence[Entry], names: Sequence[str], shapes: Sequence[ArrayShape], kind: str
) -> list[str]:
    """Names with those that a config gives in their stead.

    An entry says which array it means by its name in the module or by its number.
    """
    chosen = list(names)
    by_name = {name: n for n, name in enumerate(names)} | {
        identifier(n): i for i, n in enumerate(names)
    }
    seen: set[int] = set()
    for entry in entries:
        number = int(entry.node) if entry.node.isdigit() else by_name.get(entry.node, -1)
        if not 0 <= number < len(names):
            raise error(
                "HLO0842",
                f"{kind} '{entry.node}': the module has no such {_MEANS[kind]}",
                help=f"there are {_listed(names)}; a number counts them from 0",
            )
        if number in seen:
            raise error("HLO0842", f"{kind} '{entry.node}' is named twice")
        seen.add(number)
        shape = shapes[number]
        if entry.dimensions is not None and tuple(entry.dimensions) != tuple(shape.dimensions):
            raise error(
                "HLO0842",
                f"{kind} '{entry.node}': the config says {list(entry.dimensions)}, the module has "
                f"{shape.to_string(layout=False)}",
            )
        chosen[number] = entry.name or entry.node
        if chosen[number].isdigit():
            chosen[number] = names[number]
    missing = [name for n, name in enumerate(names) if n not in seen]
    if kind == "feed" and missing:
        raise error(
            "HLO0842",
            f"the config has no feed for {_listed(missing)}",
            help='every parameter needs one: feed { id { node_name: "' + missing[0] + '" } }',
        )
    return chosen


_MEANS = {"feed": "parameter", "fetch": "result"}


def _listed(names: Iterable[str]) -> str:
    shown = [f"'{name}'" for name in names]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
