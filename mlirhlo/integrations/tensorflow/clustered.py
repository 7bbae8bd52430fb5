"""`auto_cluster`: TensorFlow functions whose clusters are compiled here; TensorFlow runs the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import Any, cast

from mlirhlo.diagnostics import HloError
from mlirhlo.integrations.ir import executor_of, module_of
from mlirhlo.integrations.optional import require
from mlirhlo.integrations.tensorflow.clustering.declustering import final_clusters
from mlirhlo.integrations.tensorflow.clustering.dumps import dump
from mlirhlo.integrations.tensorflow.clustering.files import ON
from mlirhlo.integrations.tensorflow.clustering.flags import Flags, environment_flags, parse_flags
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, read_graph, signature
from mlirhlo.integrations.tensorflow.clustering.marking import Marking, mark
from mlirhlo.integrations.tensorflow.clustering.segments import (
    Segment,
    constant_inputs,
    segments,
)
from mlirhlo.integrations.tensorflow.graph_functions import compiler_ir, imported
from mlirhlo.integrations.tensorflow.matching import parameters_for
from mlirhlo.integrations.tensorflow.refusals import refusal_types
from mlirhlo.runtime.programs import platform_named

LOG = logging.getLogger("mlirhlo.clustering")


def _tf() -> Any:
    return require("tensorflow", "tensorflow", "mlirhlo.tensorflow")


def auto_cluster(
    function: Callable[..., object] | None = None,
    *,
    flags: str | None = None,
    platform: str | None = None,
    options: Mapping[str, object] | None = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """`tf.function` under auto-clustering: what compiles runs here, the rest in TensorFlow; also a decorator.

    - `function`: a Python function, or what `tf.function` made of one, without `jit_compile`.
    - `flags`: flags as TF_XLA_FLAGS has them, over those of the environment.
    - `platform`, `options`: as in `jit`.
    - `experimental_relax_shapes`: one trace for arguments of several shapes; its clusters are compiled
      for each combination of shapes that they meet.

    Raises `HloError` HLO0600 without TensorFlow, HLO0601 for an unknown platform, HLO0631 for wrong flags.
    """
    chosen = environment_flags(ON)
    if flags is not None:
        chosen = parse_flags(flags, chosen)
    settings = _Settings(chosen, platform_named(platform), options)

    def decorate(f: Callable[..., object]) -> ClusteredFunction:
        return ClusteredFunction(f, settings, experimental_relax_shapes)

    return decorate if function is None else decorate(function)


@dataclass(frozen=True, slots=True)
class _Settings:
    flags: Flags
    platform: str
    options: Mapping[str, object] | None


class ClusteredFunction:
    """A function that TensorFlow traces, cut into clusters and what is between them."""

    def __init__(
        self, function: Callable[..., object], settings: _Settings, relaxes_shapes: bool
    ) -> None:
        tf = _tf()
        is_traced = hasattr(function, "get_concrete_function")
        self._function: Any = (
            function if is_traced else tf.function(function, reduce_retracing=relaxes_shapes)
        )
        self._settings = settings
        self._graphs: dict[int, ClusteredGraph] = {}
        update_wrapper(self, function, updated=())

    def trace(self, *args: object, **kwargs: object) -> ClusteredGraph:
        """The graph for arguments like these, with its clusters."""
        concrete = self._function.get_concrete_function(*args, **kwargs)
        graph = self._graphs.get(id(concrete))
        if graph is None:
            name = str(getattr(self._function, "__name__", "") or "function")
            graph = self._graphs[id(concrete)] = ClusteredGraph.of(concrete, self._settings, name)
        return graph

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, as the function itself returns it; variables that it assigns are assigned."""
        return self.trace(*args, **kwargs)(*args, **kwargs)


@dataclass
class ClusteredGraph:
    """A traced function as parts that run one after another."""

    marking: Marking
    """The clusters, and why other nodes are in none."""
    parts: Sequence[_Part]
    _concrete: Any

    @classmethod
    def of(cls, concrete: Any, settings: _Settings, name: str) -> ClusteredGraph:
        """The parts of a concrete function."""
        graph = read_graph(concrete.graph.as_graph_def().SerializeToString())
        marking = mark(graph, settings.flags)
        if settings.flags.clustering_debug:
            dump(graph, marking)
        fetches = [tensor.name for tensor in concrete.outputs]
        targets = [op.name for op in concrete.graph.control_outputs]
        library = graph.definition.library
        final = final_clusters(marking.graph, [name.partition(":")[0] for name in fetches])
        types = _Types(concrete.graph, final, {node.name for node in graph.nodes})
        parts = [
            _Part(segment, types.wrapped(segment, segment.graph_def(library)), settings, name)
            for segment in segments(final, fetches, targets)
        ]
        size = {k: len(v) for k, v in marking.clusters.items()}
        LOG.info("%s: %d nodes, clusters %s, %d parts", name, len(graph.nodes), size, len(parts))
        return cls(marking, parts, concrete)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs the parts in order."""
        tf = _tf()
        concrete = self._concrete
        kind = concrete.function_type
        flat = kind.unpack_inputs(kind.bind_with_defaults(args, kwargs, {}))
        inputs = [*map(tf.convert_to_tensor, flat), *concrete.captured_inputs]
        values = dict(zip([one.name for one in concrete.inputs], inputs, strict=True))
        for part in self.parts:
            results = part([values[name] for name in part.segment.inputs])
            values.update(zip(part.segment.outputs, results, strict=True))
        structure = concrete.structured_outputs
        leaves = tf.nest.flatten(structure, expand_composites=True)
        outputs = iter([values[tensor.name] for tensor in concrete.outputs])
        packed = [None if leaf is None else next(outputs) for leaf in leaves]
        return tf.nest.pack_sequence_as(structure, packed, expand_composites=True)


@dataclass(frozen=True, slots=True)
class _Types:
    """Makes functions of parts of a graph of TensorFlow's."""

    graph: Any
    final: Graph
    """The graph that the parts are of."""
    names: Set[str]
    """Nodes of `final` that are in TensorFlow's graph."""

    def wrapped(self, segment: Segment, definition: Any) -> Any:
        """A concrete function of the segment's inputs that returns its outputs and runs all of its nodes."""
        specs = {name: self._spec(name) for name in segment.inputs}
        return imported(definition, specs, segment.outputs, [node.name for node in segment.nodes])

    def _spec(self, name: str) -> Any:
        tf = _tf()
        producer, _, output = name.rpartition(":")
        if producer not in self.names:
            node = next(node for node in self.final.nodes if node.name == producer)
            types = (signature(node.definition, self.final.functions) or ([], []))[1]
            return tf.TensorSpec(None, tf.as_dtype(types[int(output)]))
        tensor = self.graph.get_tensor_by_name(name)
        shape: Any = tensor.shape if tensor.dtype != tf.resource else ()
        return tf.TensorSpec(shape, tensor.dtype)


@dataclass
class _Part:
    """A segment that runs: by machine code of ours where it is a cluster that compiles."""

    segment: Segment
    function: Any
    settings: _Settings
    of: str
    """The name of the function that it is a part of."""
    programs: dict[object, _Program | None] = field(default_factory=dict[Any, Any])
    """By shapes of inputs, and values of those that are compiled in; None where TensorFlow runs it."""

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if not self.segment.cluster:
            return self._run_by_tensorflow(inputs)
        values = [_read(one) for one in inputs]
        key = tuple(map(_kind, values)), tuple(values[n].numpy().tobytes() for n in self.constant)
        if key not in self.programs:
            self.programs[key] = self._compile(inputs, values)
        program = self.programs[key]
        if program is None:
            return self._run_by_tensorflow(inputs)
        return program(inputs, values, len(self.segment.outputs))

    def _run_by_tensorflow(self, inputs: Sequence[Any]) -> list[Any]:
        return list(self.function(*inputs))[: len(self.segment.outputs)]

    @cached_property
    def constant(self) -> list[int]:
        """Numbers of the inputs whose values are compiled in."""
        return constant_inputs(self.segment)

    def _compile(self, inputs: Sequence[Any], values: Sequence[Any]) -> _Program | None:
        shapes = ", ".join(f"{kind}{list(shape)}" for kind, shape in map(_kind, values))
        name = f"{self.segment.cluster} of {self.of}"
        refused: tuple[type[Exception], ...] = (HloError, *refusal_types())
        try:
            program = _Program.of(self.function, inputs, values, self.constant, self.settings, name)
        except refused as problem:
            if isinstance(problem, HloError) and problem.diagnostics[0].code in (
                "HLO0600",
                "HLO0601",
            ):
                raise
            LOG.warning("%s: left to TensorFlow for (%s): %s", name, shapes, str(problem)[:300])
            return None
        again = f", program {len(self.programs) + 1}" if self.programs else ""
        LOG.info("%s: compiled for (%s)%s", name, shapes, again)
        return program


@dataclass(frozen=True, slots=True)
class _Program:
    """A cluster compiled for inputs of one kind."""

    run: Callable[[Sequence[Any]], Any]
    parameters: Sequence[int]
    """For each parameter the input that it is."""
    updates: Mapping[int, int]
    """Results that are new values of variables, and the inputs that these are."""

    @classmethod
    def of(
        cls,
        function: Any,
        inputs: Sequence[Any],
        values: Sequence[Any],
        constant: Sequence[int],
        settings: _Settings,
        name: str,
    ) -> _Program:
        """Compiles. Raises as `jit` does, and as TensorFlow does for what XLA cannot compile."""
        ir = compiler_ir(function, inputs)
        module = module_of(ir)
        shapes = [p.shape for p in module.hlo.entry.parameters]
        parameters = [n for n in range(len(inputs)) if n not in constant]
        if len(parameters) != len(shapes):
            kinds: list[Any] = list(map(_kind, values))
            parameters = list(parameters_for(shapes, kinds))
        aliases = module.hlo.input_output_alias
        updates = {
            one.output_index[0]: parameters[one.parameter_number]
            for one in (aliases.entries if aliases is not None else ())
            if len(one.output_index) == 1
        }
        run = executor_of(module, settings.platform, settings.options, name.replace(" of ", "_"))
        return cls(run, parameters, updates)

    def __call__(self, inputs: Sequence[Any], values: Sequence[Any], count: int) -> list[Any]:
        tf = _tf()
        elements = self.run([values[n].numpy() for n in self.parameters])
        results = cast("tuple[Any, ...]", elements if isinstance(elements, tuple) else (elements,))
        for output, number in self.updates.items():
            tf.raw_ops.AssignVariableOp(resource=inputs[number], value=results[output])
        return [tf.convert_to_tensor(one) for one in results[:count]]


def _read(tensor: Any) -> Any:
    """The tensor, or the value of the variable that it is the handle of."""
    tf = _tf()
    if tensor.dtype != tf.resource:
        return tensor
    kind = tf.dtypes.as_dtype(tensor._handle_data.shape_and_type[0].dtype)
    return tf.raw_ops.ReadVariableOp(resource=tensor, dtype=kind)


def _kind(tensor: Any) -> tuple[str, tuple[int, ...]]:
    return tensor.dtype.name, tuple(tensor.shape)


__all__ = ["ClusteredFunction", "ClusteredGraph", "auto_cluster"]
