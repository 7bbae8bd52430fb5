#!/usr/bin/env python3
"""Writes the models below test/data/torch; needs torch and torch_xla, which nothing else does.

    python3 -m venv torch && torch/bin/pip install torch==2.9.0 torch_xla==2.9.0 numpy
    torch/bin/python tools/make_torch_fixtures.py

A folder a model, as `save_as_stablehlo` writes it, and in it `values.npz` with the leaves of the
arguments (`input0`, …) and what PyTorch itself computed (`result0`, …).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Without it torch_xla exports no sizes left open.
os.environ.setdefault("EXPERIMENTAL_XLA_UNBOUNDED_DYNAMISM", "1")

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
import torch_xla  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree  # pyright: ignore[reportMissingImports]
from torch_xla import stablehlo  # pyright: ignore[reportMissingImports]

OUT = Path(__file__).resolve().parent.parent / "test" / "data" / "torch"


class LinearRelu(nn.Module):
    """One dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.layer(x))


class Convolution(nn.Module):
    """Convolution, batch norm with buffers, pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: Any) -> Any:
        return self.pool(torch.nn.functional.gelu(self.norm(self.conv(x)))).flatten(1)


class Attention(nn.Module):
    """Embedding of integers, masked attention, layer norm; dicts and lists."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.qkv = nn.Linear(8, 24, bias=False)
        self.norm = nn.LayerNorm(8)

    def forward(self, batch: dict[str, Any], scale: Any) -> dict[str, Any]:
        x = self.embedding(batch["tokens"])
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) * scale
        scores = scores.masked_fill(~batch["mask"], float("-inf")).softmax(-1)
        return {"y": self.norm(scores @ v + x), "best": [scores.argmax(-1), scores.amax(-1)]}


class Recurrent(nn.Module):
    """An LSTM, unrolled by the export."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.lstm(x)[0]


def causal(size: int) -> Any:
    """A mask of the past."""
    return torch.tril(torch.ones(size, size, dtype=torch.bool))


MODELS: dict[
    str, tuple[Callable[[], Any], Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]
] = {
    "linear_relu": (LinearRelu, lambda: ((torch.randn(2, 3),), {})),
    "convolution": (Convolution, lambda: ((torch.randn(1, 2, 8, 8),), {})),
    "attention": (
        Attention,
        lambda: (
            ({"tokens": torch.tensor([[1, 0, 6, 2]]), "mask": causal(4)}, torch.tensor(0.35)),
            {},
        ),
    ),
    "any_batch": (LinearRelu, lambda: ((torch.randn(2, 3),), {})),
    "recurrent": (Recurrent, lambda: ((torch.randn(2, 3, 3),), {})),
}


def write(name: str) -> None:
    """One model with the values of one call."""
    make, arguments = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    args, kwargs = arguments()
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    with torch.no_grad():
        sizes = ({0: torch.export.Dim("batch")},) if name == "any_batch" else None
        exported = torch.export.export(model, args, kwargs, dynamic_shapes=sizes)
        stablehlo.save_as_stablehlo(exported, str(folder))
        expected = _pytree.tree_leaves(model(*args, **kwargs))
    inputs = _pytree.tree_leaves((args, kwargs))
    values = {f"input{i}": x.numpy() for i, x in enumerate(inputs)}
    values |= {f"result{i}": x.numpy() for i, x in enumerate(expected)}
    np.savez_compressed(folder / "values.npz", allow_pickle=False, **values)


def main() -> int:
    """Writes the models that are named, or all."""
    for name in sys.argv[1:] or MODELS:
        write(name)
        print(name)
    (OUT / "VERSION").write_text(f"torch {torch.__version__}\ntorch_xla {torch_xla.__version__}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
