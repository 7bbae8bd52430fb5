"""Values that talk about dimensions: windows, paddings, slices, convolution labels, sparsity.

Source of every syntax: HLO text, "Attribute value syntaxes".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.irdl import irdl_attr_definition

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

_INT = "-?[0-9]{1,19}"
_DXD = re.compile(rf"[0-9]{{1,19}}(?:x[0-9]{{1,19}})+|{_INT}")
_PAD = re.compile(rf"{_INT}_{_INT}(?:_[0-9]{{1,19}})?(?:x{_INT}_{_INT}(?:_[0-9]{{1,19}})?)*")
_LABELS = re.compile(r"([0-9bf?]*)_([0-9io?]*)->([0-9bf?]*)")
_SPARSITY = re.compile(r"([0-9]{1,19})x([0-9]{1,19})")


def _token(cursor: Cursor, pattern: re.Pattern[str], what: str) -> re.Match[str]:
    match = pattern.match(cursor.text, cursor.skip(), cursor.end)
    if match is None:
        raise cursor.problem(f"expects {what}")
    cursor.position = match.end()
    return match


# ---------------------------------------------------------------- window


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """One dimension of a window, in elements."""

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1
    """`rhs_dilate`."""
    base_dilation: int = 1
    """`lhs_dilate`."""
    window_reversal: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """`{size=3x3 stride=1x2 pad=0_0x-1_1 lhs_dilate=1x3 rhs_dilate=2x1 rhs_reversal=1x0}`."""

    dimensions: tuple[WindowDimension, ...]

    def __str__(self) -> str:
        dims = self.dimensions
        parts = ["size=" + "x".join(str(d.size) for d in dims)] if dims else []

        def part(name: str, values: Sequence[str], default: str) -> None:
            if any(v != default for v in values):
                parts.append(f"{name}=" + "x".join(values))

        part("stride", [str(d.stride) for d in dims], "1")
        part("pad", [f"{d.padding_low}_{d.padding_high}" for d in dims], "0_0")
        part("lhs_dilate", [str(d.base_dilation) for d in dims], "1")
        part("rhs_dilate", [str(d.window_dilation) for d in dims], "1")
        part("rhs_reversal", [str(int(d.window_reversal)) for d in dims], "0")
        return "{" + " ".join(parts) + "}"

    def running_dimension(self, sizes: Sequence[int]) -> tuple[int, bool] | None:
        """The dimension of an array of these sizes along which each window reaches back to the first element, or on
        to the last one (True); None where other elements lie in windows."""
        found: tuple[int, bool] | None = None
        for dim, (d, size) in enumerate(zip(self.dimensions, sizes, strict=True)):
            dilated = d.stride * d.window_dilation * d.base_dilation != 1
            if d.size == 1 and not (
                dilated or d.window_reversal or d.padding_low or d.padding_high
            ):
                continue
            reach = (d.padding_low, d.padding_high)
            if found is not None or dilated or d.window_reversal or d.size != size:
                return None
            if reach not in ((size - 1, 0), (0, size - 1)):
                return None
            found = (dim, reach[1] > 0)
        return found


_WINDOW_KEYS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def read_window(cursor: Cursor) -> Window:
    """Reads `{size=… stride=…}`; entries are separated by blanks only. Raises `SyntaxProblem`."""
    cursor.expect("{")
    found: dict[str, tuple[tuple[int, ...], ...]] = {}
    while not cursor.accept("}"):
        start = cursor.skip()
        key = cursor.word("a window attribute")
        if key not in _WINDOW_KEYS:
            raise SyntaxProblem(
                start,
                f"unexpected window attribute {key!r}; one of {', '.join(_WINDOW_KEYS)}",
                len(key),
            )
        if key in found:
            raise SyntaxProblem(start, f"window attribute {key!r} appears twice", len(key))
        cursor.expect("=")
        at = cursor.skip()
        if key == "pad":
            pieces = _token(cursor, _PAD, "a padding such as 0_0x1_1").group().split("x")
            found[key] = tuple(tuple(map(int, piece.split("_"))) for piece in pieces)
            if any(len(piece) != 2 for piece in found[key]):
                raise SyntaxProblem(at, "a window's padding has no interior part")
        else:
            pieces = _token(cursor, _DXD, "sizes such as 3x3").group().split("x")
            found[key] = tuple((int(piece),) for piece in pieces)
        if "size" in found and len(found[key]) != len(found["size"]):
            raise SyntaxProblem(at, f"expects '{key}=' has the same size as 'size='")
    if not found:
        return Window(())
    if "size" not in found:
        raise cursor.problem("sub-attribute 'size=' is expected in the window")
    rank = len(found["size"])
    for key, values in found.items():
        if len(values) != rank:
            raise cursor.problem(f"expects '{key}=' has the same size as 'size='")
    one, pads = ((1,),) * rank, found.get("pad", ((0, 0),) * rank)
    return Window(
        tuple(
            WindowDimension(
                size=found["size"][i][0],
                stride=found.get("stride", one)[i][0],
                padding_low=pads[i][0],
                padding_high=pads[i][1],
                window_dilation=found.get("rhs_dilate", one)[i][0],
                base_dilation=found.get("lhs_dilate", one)[i][0],
                window_reversal=found.get("rhs_reversal", ((0,),) * rank)[i][0] != 0,
            )
            for i in range(rank)
        )
    )


@irdl_attr_definition
class WindowAttr(TextAttr[Window]):
    """A `Window`."""

    name = "hlo.window"
    read = read_window


# ---------------------------------------------------------------- padding and slices


@dataclass(frozen=True, slots=True)
class PaddingDimension:
    """Padding of one dimension; negative edges crop."""

    low: int = 0
    high: int = 0
    interior: int = 0


@dataclass(frozen=True, slots=True)
class Padding:
    """`0_0_0x1_2_3`: low, high and interior padding of every dimension."""

    dimensions: tuple[PaddingDimension, ...]

    def __str__(self) -> str:
        if any(d.interior for d in self.dimensions):
            return "x".join(f"{d.low}_{d.high}_{d.interior}" for d in self.dimensions)
        return "x".join(f"{d.low}_{d.high}" for d in self.dimensions)


def read_padding(cursor: Cursor) -> Padding:
    """Reads `low_high[_interior]x…`. Raises `SyntaxProblem`."""
    if cursor.at_end():
        return Padding(())
    pieces = _token(cursor, _PAD, "a padding such as 0_0x1_2_3").group().split("x")
    return Padding(tuple(PaddingDimension(*map(int, piece.split("_"))) for piece in pieces))


@irdl_attr_definition
class PaddingAttr(TextAttr[Padding]):
    """A `Padding`."""

    name = "hlo.padding"
    read = read_padding


@dataclass(frozen=True, slots=True)
class SliceDimension:
    """`[start:limit:stride]` of one dimension; limit is exclusive."""

    start: int
    limit: int
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Slice:
    """`{[0:2], [1:9:2]}`."""

    dimensions: tuple[SliceDimension, ...]

    def __str__(self) -> str:
        if any(d.stride != 1 for d in self.dimensions):
            parts = [f"[{d.start}:{d.limit}:{d.stride}]" for d in self.dimensions]
        else:
            parts = [f"[{d.start}:{d.limit}]" for d in self.dimensions]
        return "{" + ", ".join(parts) + "}"


def read_slice(cursor: Cursor) -> Slice:
    """Reads `{[start:limit:stride], …}`. Raises `SyntaxProblem`."""

    def one() -> SliceDimension:
        cursor.expect("[")
        bounds = [cursor.integer()]
        while cursor.accept(":"):
            bounds.append(cursor.integer())
        cursor.expect("]")
        if len(bounds) not in (2, 3):
            raise cursor.problem("expects [start:limit:step] or [start:limit]")
        return SliceDimension(*bounds)

    return Slice(cursor.items("{", "}", one))


@irdl_attr_definition
class SliceAttr(TextAttr[Slice]):
    """A `Slice`."""

    name = "hlo.slice"
    read = read_slice


# ---------------------------------------------------------------- convolution


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """`b01f_01io->b01f`: which dimension of each array plays which part."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    def __str__(self) -> str:
        def label(first: int, second: int, spatial: tuple[int, ...], names: str) -> str:
            marks = {
                first: names[0],
                second: names[1],
                **{d: str(k) for k, d in enumerate(spatial)},
            }
            return "".join(marks.get(dim, "?") for dim in range(max(marks) + 1))

        lhs = label(
            self.input_batch_dimension,
            self.input_feature_dimension,
            self.input_spatial_dimensions,
            "bf",
        )
        rhs = label(
            self.kernel_input_feature_dimension,
            self.kernel_output_feature_dimension,
            self.kernel_spatial_dimensions,
            "io",
        )
        out = label(
            self.output_batch_dimension,
            self.output_feature_dimension,
            self.output_spatial_dimensions,
            "bf",
        )
        return f"{lhs}_{rhs}->{out}"


def read_dim_labels(cursor: Cursor) -> ConvolutionDimensionNumbers:
    """Reads `lhs_rhs->out`. Raises `SyntaxProblem`."""
    start = cursor.skip()
    match = _token(cursor, _LABELS, "dim labels such as b01f_01io->b01f")
    lhs, rhs, out = match.groups()
    spatial = len(rhs.replace("?", "")) - 2

    def fields(text: str, names: str) -> tuple[int, int, tuple[int, ...]]:
        marks = [c for c in text if c != "?"]
        wanted = set(names) | {str(k) for k in range(spatial)}
        if len(marks) != len(set(marks)) or set(marks) != wanted:
            raise SyntaxProblem(
                start,
                f"dim labels {text!r} must name {', '.join(sorted(wanted))} once each",
                len(match.group()),
            )
        return (
            text.index(names[0]),
            text.index(names[1]),
            tuple(text.index(str(k)) for k in range(spatial)),
        )

    if not 0 <= spatial <= 10:
        raise SyntaxProblem(
            start, f"dim labels {rhs!r} must name i, o and at most 10 spatial dimensions"
        )
    a, b, c = fields(lhs, "bf"), fields(rhs, "io"), fields(out, "bf")
    return ConvolutionDimensionNumbers(*a, *b, *c)


@irdl_attr_definition
class ConvolutionDimensionNumbersAttr(TextAttr[ConvolutionDimensionNumbers]):
    """A `ConvolutionDimensionNumbers`."""

    name = "hlo.dim_labels"
    read = read_dim_labels


# ---------------------------------------------------------------- sparsity


@dataclass(frozen=True, slots=True)
class TensorSparsity:
    """N of every M elements along a dimension are stored."""

    num_non_zero: int
    block_size: int
    dimension: int
    stride: int
    idx: int = 0
    """Operand that holds the positions (libtpu 0.0.51 on); 0 = not given."""


@dataclass(frozen=True, slots=True)
class SparsityConfig:
    """`{lhs={sparsity=2x4 dimension=1 stride=1} rhs={…}}`."""

    lhs: TensorSparsity | None = None
    rhs: TensorSparsity | None = None

    def __str__(self) -> str:
        def side(name: str, value: TensorSparsity | None) -> list[str]:
            if value is None:
                return []
            idx = f" idx={value.idx}" if value.idx else ""
            sizes = f"{value.num_non_zero}x{value.block_size}"
            return [
                f"{name}={{sparsity={sizes} dimension={value.dimension} stride={value.stride}{idx}}}"
            ]

        return "{" + " ".join(side("lhs", self.lhs) + side("rhs", self.rhs)) + "}"


def read_sparsity_config(cursor: Cursor) -> SparsityConfig:
    """Reads `{lhs={…} rhs={…}}`; entries are separated by blanks only. Raises `SyntaxProblem`."""

    def one() -> TensorSparsity:
        values: dict[str, int] = {"sparsity": 0, "m": 0, "dimension": 0, "stride": 0, "idx": 0}

        def entry(key: str) -> None:
            if key == "sparsity":
                match = _token(cursor, _SPARSITY, "N:M sparsity as NxM")
                values["sparsity"], values["m"] = int(match[1]), int(match[2])
            elif key in ("dimension", "stride", "idx"):
                values[key] = cursor.integer()
            else:
                raise cursor.problem(f"unexpected sparsity field {key!r}")

        _entries(cursor, entry)
        return TensorSparsity(
            values["sparsity"], values["m"], values["dimension"], values["stride"], values["idx"]
        )

    sides: dict[str, TensorSparsity] = {}

    def side(key: str) -> None:
        if key not in ("lhs", "rhs"):
            raise cursor.problem(f"unexpected sparsity_config field {key!r}")
        sides[key] = one()

    _entries(cursor, side)
    return SparsityConfig(sides.get("lhs"), sides.get("rhs"))


def _entries(cursor: Cursor, entry: Callable[[str], None]) -> None:
    cursor.expect("{")
    while not cursor.accept("}"):
        key = cursor.word("a field")
        cursor.expect("=")
        entry(key)


@irdl_attr_definition
class SparsityConfigAttr(TextAttr[SparsityConfig]):
    """A `SparsityConfig`."""

    name = "hlo.sparsity_config"
    read = read_sparsity_config
