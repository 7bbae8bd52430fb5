"""What of a module is drawn, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True, slots=True)
class Stage:
    """The module at one moment of its compilation."""

    label: str
    """`after algsimp`, or a file name."""
    module: ModuleOp
    file: str = ""
    """Path of the file that holds its text, below the folder of the stages."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What is drawn, for every format; those that do not apply to one are ignored."""

    label: str = ""
    """Title: a dump's file name without extension."""
    sharding_color: bool = False
    """`--xla_hlo_graph_sharding_color`."""
    addresses: bool = False
    """`--xla_hlo_graph_addresses`; numbers stand for addresses."""
    fusions: bool = True
    """Bodies of fusions instead of one node each; off for `top_level` files."""
    backend_config: bool = False
    hover: bool = True
    """dot only: rules that colour edges under the pointer; most of the bytes of XLA's files."""
    center: str | None = None
    """Name of an instruction: draw its neighbourhood only."""
    radius: int = 2
    """Of the neighbourhood, in operands and users."""
    boundary: Sequence[str] = ()
    """Names of instructions that the neighbourhood does not go beyond."""
    path: tuple[str, str] | None = None
    """Names of two instructions: draw the paths between them only."""
    max_nodes: int = 100
    """Of paths; beyond that, shortest paths only."""
    stages: Sequence[Stage] = ()
    """html only: the module after each pass, oldest first; the module rendered is the last one."""
    file: str = ""
    """html only: path of the file that holds the text of the module, below `folder`."""
    folder: str = ""
    """html only: where files of stages lie, when the page lies elsewhere."""
    page: str = ""
    """html only: the file that the page is written to, when that is not in `folder`."""
    server: str = ""
    """url only: address of a Graphviz server that takes a dot text behind it, as in
    `https://host/graphviz#`; without one the page itself is the address."""
