"""LSTMs that JAX hands to cuDNN and MIOpen: `cudnn_rnn_ffi`, `cudnn_rnn_bwd_ffi`.

    i, f, g, o = split(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh)
    c' = sigmoid(f) c + sigmoid(i) tanh(g)      h' = sigmoid(o) tanh(c')

of each layer and direction; two directions give their outputs side by side. The flat weights hold all pairs
(W_ih, W_hh), layer by layer and direction by direction, then all pairs (b_ih, b_hh); MIOpen has o before g.
Steps beyond a sequence's length change nothing and give zeros. The backward call computes the forward one
again: the room in which the library keeps its own notes is zeros here.
Source: `jax.experimental.rnn` and the descriptor that jaxlib packs into `opaque`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.custom_calls.sparse import opaque_of
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

_DESCRIPTOR = "<iiiiifii"
"""Input size, hidden size, layers, batch, steps, dropout, bidirectional, TF32."""


@dataclass
class Lstm:
    """Sizes, and views of the weights: a pair of matrices and a pair of biases of each layer and direction."""

    directions: int
    layers: int
    order: tuple[int, ...]
    """Where i, f, g, o stand."""
    matrices: list[tuple[Any, Any]]
    biases: list[tuple[Any, Any]]

    @classmethod
    def of(cls, op: CustomCallOp, weights: Array) -> Lstm:
        """The LSTM of a call. Raises HLO0355."""
        opaque = opaque_of(op)
        if len(opaque) < struct.calcsize(_DESCRIPTOR):
            raise unfit(op, f"{len(opaque)} bytes are no descriptor of an LSTM")
        inputs, hidden, layers, _, _, dropout, both, _ = struct.unpack_from(_DESCRIPTOR, opaque)
        if dropout:
            raise unfit(op, "dropout takes random numbers that are cuDNN's own; set its rate to 0")
        directions = 2 if both else 1
        first = 0

        def take(*shape: int) -> Any:
            nonlocal first
            start, first = first, first + int(np.prod(shape))
            return weights[start:first].reshape(shape)

        matrices: list[tuple[Any, Any]] = []
        for number in range(layers * directions):
            width = inputs if number < directions else directions * hidden
            matrices.append((take(4 * hidden, width), take(4 * hidden, hidden)))
        biases = [(take(4 * hidden), take(4 * hidden)) for _ in range(layers * directions)]
        if first != len(weights):
            raise unfit(op, f"{len(weights)} weights, of which its descriptor has {first}")
        order = (0, 1, 3, 2) if op.custom_call_target.startswith("hip") else (0, 1, 2, 3)
        return cls(directions, layers, order, matrices, biases)

    def gates(self, x: Array) -> list[Any]:
        """i, f, g, o of [batch, 4 * hidden]."""
        parts = np.split(x, 4, axis=-1)
        return [parts[k] for k in self.order]

    def joined(self, gates: Sequence[Any]) -> Any:
        return np.concatenate([gates[self.order.index(k)] for k in range(4)], axis=-1)


@dataclass
class _Step:
    """What the backward pass needs of a step of a layer in one direction."""

    time: int
    live: Any
    x: Any
    h: Any
    c: Any
    gates: list[Any]
    cell: Any


def _where(condition: Any, x: Any, y: Any) -> Any:
    return cast(Any, np.where(condition, x, y))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _run(
    net: Lstm, x: Any, h0: Any, c0: Any, lengths: Any
) -> tuple[Any, Any, Any, list[list[_Step]]]:
    """Outputs [batch, time, …], last h and c, and the steps of each layer and direction."""
    final_h, final_c = np.array(h0), np.array(c0)
    notes: list[list[_Step]] = []
    for layer in range(net.layers):
        outputs: list[Any] = []
        for direction in range(net.directions):
            number = layer * net.directions + direction
            (w_x, w_h), (b_x, b_h) = net.matrices[number], net.biases[number]
            h, c = final_h[number].copy(), final_c[number].copy()
            made: Any = np.zeros((*x.shape[:2], h.shape[-1]))
            steps: list[_Step] = []
            times = range(x.shape[1])
            for time in reversed(times) if direction else times:
                live = (time < lengths)[:, None]
                i, f, g, o = net.gates(x[:, time] @ w_x.T + b_x + h @ w_h.T + b_h)
                i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
                cell = f * c + i * g
                steps.append(_Step(time, live, x[:, time], h, c, [i, f, g, o], cell))
                h = _where(live, o * np.tanh(cell), h)
                c = _where(live, cell, c)
                made[:, time] = _where(live, h, 0)
            final_h[number], final_c[number] = h, c
            outputs.append(made)
            notes.append(steps)
        x = np.concatenate(outputs, axis=-1)
    return x, final_h, final_c, notes


def _wide(values: Sequence[Any]) -> list[Any]:
    return [np.asarray(v).astype(np.float64) for v in values]


def _results(op: CustomCallOp, *values: Any) -> Value:
    parts = [cast(ArrayShape, part) for part in cast(TupleShape, op.shape).elements]
    typed = [v.astype(part.element_type.dtype) for v, part in zip(values, parts, strict=False)]
    return (*typed, *map(zeros, parts[len(values) :]))


@computes("cudnn_rnn_ffi", "hipdnn_rnn_ffi")
def forward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(output, last h, last c, workspace, notes)` of x, h, c, weights, lengths. Raises HLO0355."""
    x, h0, c0, weights = _wide(inputs[:4])
    y, h, c, _ = _run(Lstm.of(op, weights), x, h0, c0, inputs[4])
    return _results(op, y, h, c)


@computes("cudnn_rnn_bwd_ffi", "hipdnn_rnn_bwd_ffi")
def backward(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(dx, dh, dc, dweights, workspace)` of dy, last dh, last dc, x, h, c, weights, y, notes, what dweights
    begin with, lengths. Raises HLO0355."""
    dy, dh_n, dc_n, x, h0, c0, weights = _wide(inputs[:7])
    net = Lstm.of(op, weights)
    *_, notes = _run(net, x, h0, c0, inputs[10])
    total = np.asarray(inputs[9]).astype(np.float64)
    sums = Lstm.of(op, total)
    for layer in reversed(range(net.layers)):
        below = 0
        for direction, part in enumerate(np.split(dy, net.directions, axis=-1)):
            number = layer * net.directions + direction
            (w_x, w_h), (s_x, s_h) = net.matrices[number], sums.matrices[number]
            dh, dc = dh_n[number], dc_n[number]
            dx: Any = np.zeros((*x.shape[:2], w_x.shape[1]))
            for step in reversed(notes[number]):
                i, f, g, o = step.gates
                seen = step.live
                to_h = _where(seen, dh + part[:, step.time], 0)
                tanh = np.tanh(step.cell)
                to_c = _where(seen, dc + to_h * o * (1 - tanh**2), 0)
                gates = net.joined(
                    [
                        to_c * g * i * (1 - i),
                        to_c * step.c * f * (1 - f),
                        to_c * i * (1 - g**2),
                        to_h * tanh * o * (1 - o),
                    ]
                )
                dx[:, step.time] = gates @ w_x
                s_x += gates.T @ step.x
                s_h += gates.T @ step.h
                for bias in sums.biases[number]:
                    bias += np.sum(gates, axis=0)
                dh, dc = _where(seen, gates @ w_h, dh), _where(seen, to_c * f, dc)
            dh_n[number], dc_n[number] = dh, dc
            below = below + dx
        dy = below
    return _results(op, dy, dh_n, dc_n, total)
