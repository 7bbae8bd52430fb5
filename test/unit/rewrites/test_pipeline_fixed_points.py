"""No pass of a pipeline undoes an earlier one: labels do not come back, and a second run finds the layouts chosen."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from support import DATA, SEED, one_in
from unit.rewrites.random_layouts import Layouts
from unit.rewrites.random_loops import Program
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.rewrites.pipeline import run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of

PLATFORMS = ("cpu", "gpu", "tpu")
_PLACED = frozenset({"convolution", "copy", "custom-call", "dot", "reduce", "sort", "transpose"})
_NUMBERS = ("dim_labels", "lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims")


def convolution(seed: int) -> str:
    """A convolution between element-wise instructions, its dimensions in any order."""
    choose = random.Random(seed)
    space = "012"[: choose.choice((1, 2, 2, 3))]

    def order(*others: str) -> str:
        letters = [*space, *others]
        choose.shuffle(letters)
        return "".join(letters)

    x, w, y = order("b", "f"), order("i", "o"), order("b", "f")
    if not seed % 5:
        x, w, y = f"bf{space}", f"oi{space}", f"bf{space}"

    def shape(labels: str, **sizes: int) -> str:
        return "f32[" + ",".join(str(sizes.get(c, sizes["space"])) for c in labels) + "]"

    result = shape(y, b=2, f=16, space=6)
    window = f"size={'x'.join('3' for _ in space)} pad={'x'.join('1_1' for _ in space)}"
    return (
        f"HloModule c\nENTRY e {{ x = {shape(x, b=2, f=8, space=6)} parameter(0)\n"
        f"  w = {shape(w, i=8, o=16, space=3)} parameter(1)\n"
        f"  n = {shape(x, b=2, f=8, space=6)} tanh(x)\n"
        f"  c = {result} convolution(n, w), window={{{window}}}, dim_labels={x}_{w}->{y}\n"
        f"  ROOT r = {result} exponential(c) }}\n"
    )


def texts() -> Iterator[str]:
    """Programs whose layouts are open, fixed by the entry, and handed through loops."""
    for seed in range(SEED, SEED + 4):
        yield convolution(seed)
        yield Layouts(seed).text
        yield Program(seed, nested=bool(seed % 2)).text
    for path in sorted(DATA.glob("programs/*/*.hlo")):
        if path.stem == path.parent.name:  # as written, not optimised
            yield path.read_text()


def layouts(module: ModuleOp) -> list[str]:
    """What has an order of dimensions: of instructions that compute in one, or move to another."""
    return sorted(
        f"{op.opcode.name} {[str(op.properties.get(k)) for k in _NUMBERS]} "
        f"{[*map(str, op.input_shapes)]} {op.shape}"
        for op in HloModule(module).instructions
        if op.opcode.name in _PLACED
    )


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_second_run_finds_the_layouts_chosen(platform: str) -> None:
    for text in texts():
        module = parse_module(text)
        run_pipeline(module, pipelines_of(platform))
        once = layouts(module)
        run_pipeline(module, pipelines_of(platform))
        assert layouts(module) == once, text


class _Labels:
    """The labels of a module's one convolution, operands and result apart, after each pass."""

    def __init__(self) -> None:
        self.seen: tuple[list[str], list[str], list[str]] = ([], [], [])

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Nothing to do."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Nothing to do."""

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """Labels that come back to what they were are undone work."""
        for op in HloModule(module).instructions:
            if isinstance(op, ConvolutionOp):
                operands, _, result = str(op.dim_labels).partition("->")
                for seen, label in zip(self.seen, (*operands.split("_"), result), strict=True):
                    if not seen or seen[-1] != label:
                        assert label not in seen, f"{pass_.name}: {[*seen, label]}"
                        seen.append(label)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_labels_of_convolutions_do_not_come_back(platform: str) -> None:
    for seed in one_in(3, range(18)):
        labels = _Labels()
        run_pipeline(parse_module(convolution(seed)), pipelines_of(platform), (labels,))
        if platform == "cpu":
            space = labels.seen[0][-1][1:-1]
            assert [seen[-1] for seen in labels.seen] == [f"b{space}f", f"{space}io", f"b{space}f"]
