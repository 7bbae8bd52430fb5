"""XLA's colours: a scheme by opcode, by sharding, or for what a filter says of a node.

Source: dumps reference, "Colours by opcode" and "Sharding colours"; the graphs of XLA itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Colors:
    """Style and colours of a node."""

    style: str
    fill: str
    stroke: str
    font: str

    @property
    def attributes(self) -> str:
        """As attributes of a node in dot."""
        return (
            f'style="{self.style}", fontcolor="{self.font}", color="{self.stroke}",'
            f' fillcolor="{self.fill}"'
        )


class Scheme(Enum):
    """The schemes, in the order in which shardings get them."""

    BLUE = Colors("filled", "#bbdefb", "#8aacc8", "black")
    BROWN = Colors("filled", "#bcaaa4", "#8c7b75", "black")
    DARK_BLUE = Colors("filled", "#1565c0", "#003c8f", "white")
    DARK_GREEN = Colors("filled", "#2e7d32", "#005005", "white")
    DARK_ORANGE = Colors("filled", "#ffb74d", "#c88719", "black")
    DARK_RED = Colors("filled", "#b71c1c", "#7f0000", "white")
    GRAY = Colors("filled", "#cfd8dc", "#9ea7aa", "black")
    GREEN = Colors("filled", "#c8e6c9", "#97b498", "black")
    ORANGE = Colors("filled", "#ffe0b2", "#cbae82", "black")
    PURPLE = Colors("filled", "#e1bee7", "#af8eb5", "black")
    RED = Colors("filled", "#ffcdd2", "#cb9ca1", "black")
    WHITE = Colors("filled", "white", "#9e9e9e", "black")
    YELLOW = Colors("filled", "#fff9c4", "#cbc693", "black")
    DASHED_BORDER = Colors("filled,dashed", "white", "#757575", "#757575")


SHARDING_SCHEMES = tuple(scheme for scheme in Scheme if scheme is not Scheme.DASHED_BORDER)
"""Handed out round robin."""

_OPCODES: Mapping[Scheme, str] = {
    Scheme.YELLOW: "broadcast dynamic-update-slice",
    Scheme.GREEN: "concatenate dynamic-slice reshape dynamic-reshape reverse transpose copy"
    " copy-start copy-done",
    Scheme.DARK_BLUE: "dot ragged-dot scaled-dot convolution fft triangular-solve cholesky",
    Scheme.PURPLE: "reduce reduce-window scan scatter select-and-scatter gather batch-norm-grad"
    " batch-norm-inference batch-norm-training",
    Scheme.GRAY: "fusion map domain get-dimension-size set-dimension-size",
    Scheme.BROWN: "all-gather all-gather-start all-gather-done all-reduce all-reduce-start"
    " all-reduce-done all-to-all collective-broadcast collective-permute collective-permute-start"
    " collective-permute-done ragged-all-to-all reduce-scatter send send-done recv recv-done infeed"
    " outfeed partition-id replica-id",
    Scheme.DARK_GREEN: "call conditional custom-call while",
}

SCHEME_OF_OPCODE: Mapping[str, Scheme] = {
    opcode: scheme for scheme, opcodes in _OPCODES.items() for opcode in opcodes.split()
}
"""Opcodes that are not white; parameters, bitcasts and async pairs depend on more than the opcode."""

CATEGORIES: Mapping[Scheme, str] = {
    Scheme.WHITE: "elementwise and structure",
    Scheme.YELLOW: "broadcast, update",
    Scheme.GREEN: "data movement",
    Scheme.DARK_BLUE: "dot, convolution",
    Scheme.PURPLE: "reduction, gather",
    Scheme.ORANGE: "parameter",
    Scheme.DARK_ORANGE: "large parameter",
    Scheme.GRAY: "fusion, map",
    Scheme.BROWN: "communication",
    Scheme.DARK_GREEN: "call, loop, custom call",
}
"""What a legend says of the schemes of opcodes."""
