"""Random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import attribute, string, word
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, lowers, result_shape, result_shapes

_ALGORITHMS: Mapping[str, str] = {
    "DEFAULT": "rng_default",
    "THREE_FRY": "rng_three_fry",
    "PHILOX": "rng_philox",
}


@lowers("stablehlo.rng")
def rng(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`rng`; the shape is the result's."""
    kind = word(attribute(op, "rng_distribution"), "UNIFORM").lower()
    properties = {"distribution": string(f"rng_{kind}")}
    return (body.emit("rng", body.inputs(op)[:2], result_shape(op), properties),)


@lowers("stablehlo.rng_bit_generator")
def rng_bit_generator(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`rng-bit-generator`."""
    algorithm = _ALGORITHMS[word(attribute(op, "rng_algorithm"), "DEFAULT")]
    shape = TupleShape(tuple(result_shapes(op)))
    properties = {"algorithm": string(algorithm)}
    value = body.emit("rng-bit-generator", body.inputs(op), shape, properties)
    return body.split(value, 2)
