"""Graphs as functions of TensorFlow's, and the HLO modules that its compiler makes of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.integrations.optional import require

if TYPE_CHECKING:
    from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2


def imported(
    definition: tf_pb2.GraphDef,
    inputs: Mapping[str, Any],
    outputs: Sequence[str],
    nodes: Sequence[str] = (),
    variables: Mapping[str, Any] | None = None,
) -> Any:
    """A concrete function that runs a graph.

    `inputs`: tensors (`name:0`) that are its parameters, with their `tf.TensorSpec`. `outputs`: tensors that
    it returns. `nodes`: what else it runs. `variables`: by the tensor of the handle, the `tf.Variable` that
    takes its place.
    """
    tf: Any = require("tensorflow", "tensorflow", "mlirhlo.tensorflow")
    graph_def = tf.compat.v1.GraphDef.FromString(definition.SerializeToString())

    read = {name if ":" in name else f"{name}:0" for node in definition.node for name in node.input}
    computed = [name for name in outputs if name not in inputs]

    def body(*tensors: Any) -> Any:
        values = dict(zip(inputs, tensors, strict=True))
        capture = tf.compat.v1.get_default_graph().capture
        handles = {name: capture(v.handle) for name, v in (variables or {}).items()}
        elements = tf.graph_util.import_graph_def(
            graph_def,
            # TensorFlow refuses inputs that nothing reads.
            input_map={n: tensor for n, tensor in {**values, **handles}.items() if n in read},
            return_elements=[*computed, *nodes],
            name="",
        )
        count = len(computed)
        values.update(zip(computed, elements[:count], strict=True))
        with tf.control_dependencies(elements[count:]):
            return [tf.identity(values[name]) for name in outputs] or [tf.constant(0)]

    return tf.compat.v1.wrap_function(body, list(inputs.values()))


def compiler_ir(function: Any, inputs: Sequence[Any]) -> bytes:
    """The module that TensorFlow makes of a concrete function for these inputs, before optimisations."""
    context: Any = require("tensorflow.python.eager.context", "tensorflow", "mlirhlo.tensorflow")
    context = context.context()
    context.ensure_initialized()
    function.add_to_graph()
    name = function.name
    ir: bytes = context.get_compiler_ir(
        device_name="/job:localhost/replica:0/task:0/device:CPU:0",
        platform_name=None,
        function_name=name.decode() if isinstance(name, bytes) else name,
        flat_args=list(inputs),
        captured_inputs=list(function.captured_inputs),
        stage="hlo_serialized",
    )
    return ir
