"""The backend of `torch.compile`: graphs of ATen operations as HLO modules, forward and backward.

    import torch
    model = torch.compile(model, backend="mlirhlo")

Dynamo finds the backend by its entry point, so that nothing is imported. AOTAutograd makes a forward and a backward
graph without mutation; PyTorch's own decompositions bring them to the operations that `aten` gives a meaning. A graph
compiles when it is called first, and again for other sizes (`dynamic=True`). Random numbers are PyTorch's own, drawn
before each call, so that `torch.manual_seed` holds.

Source: PyTorch's documentation of custom backends, `torch._dynamo.backends.common.aot_autograd`.
"""

# Narrowing by isinstance leaves the parameters of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.integrations.torch.aten import RULES, Call
from mlirhlo.integrations.torch.aten.rules import DTYPES, dtype_of
from mlirhlo.integrations.torch.decompositions import encoder_layer
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.tracing.trace import Builder, Trace, shape_for
from mlirhlo.runtime.programs import Program, platform_named, prepare

OPTIONS = ("platform", "fallback", "compiler_options")
"""What `torch.compile(options=…)` takes."""

_DECOMPOSED = (
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional", "cudnn_batch_norm",
    "_softmax_backward_data", "_log_softmax_backward_data", "gelu_backward", "silu_backward", "sigmoid_backward",
    "tanh_backward", "elu_backward", "leaky_relu_backward", "hardtanh_backward", "threshold_backward", "threshold",
    "softplus", "softplus_backward", "mish", "hardswish", "hardswish_backward", "hardsigmoid", "hardsigmoid_backward",
    "log_sigmoid_forward", "log_sigmoid_backward", "glu", "glu_backward", "nll_loss_forward", "nll_loss_backward",
    "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss", "mse_loss_backward", "smooth_l1_loss",
    "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward", "binary_cross_entropy",
    "binary_cross_entropy_backward", "native_dropout", "native_dropout_backward", "addcmul", "addcdiv", "lerp",
    "slice_backward", "select_backward", "unfold_backward", "_to_copy", "std", "norm", "linalg_vector_norm", "frac",
    "logit", "logit_backward", "sinc", "xlogy", "special_xlog1py", "erfc", "addr", "im2col", "col2im", "pixel_shuffle",
    "pixel_unshuffle", "reflection_pad1d", "reflection_pad2d", "replication_pad2d", "grid_sampler_2d", "cumprod",
    "new_full", "new_zeros", "new_ones", "dot", "nan_to_num", "rot90", "unfold", "std_mean", "index_copy", "index_fill",
    "masked_scatter", "linspace", "logspace", "count_nonzero", "upsample_nearest2d.vec", "upsample_bilinear2d.vec",
    "mkldnn_rnn_layer", "deg2rad", "rad2deg", "square", "special_entr", "dist", "trace", "celu", "selu", "narrow",
)  # fmt: skip
"""Operations that PyTorch decomposes, beside those of its core decompositions."""

_RANDOM = frozenset(
    ("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "bernoulli",
     "normal_functional", "uniform", "exponential", "normal")
)  # fmt: skip
"""Packets of operations whose results PyTorch draws before the call."""


def backend(
    graph: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> Callable[..., Any]:
    """Compiles a graph of dynamo's; what `torch.compile(backend="mlirhlo")` calls.

    `options`: `platform`, as every front end has it; `fallback="eager"` lets PyTorch run a graph with an operation
    that has no rule, which a warning names (the default, `"error"`, raises HLO0612); `compiler_options`, XLA's.

    Raises `HloError`: HLO0612 for an operation without a rule, HLO0613 for options that there are not, HLO0432 and
    HLO0435 for what has no machine code; dynamo passes them on in its own exception.
    """
    torch = import_module("torch")
    common = import_module("torch._dynamo.backends.common")
    settings = _settings({**(options or {}), **more})
    compile_graph = _Compiler(torch, settings)
    with ExitStack() as stack:
        # The product of attention as plain operations, and recurrent layers step by step.
        attention = import_module("torch.nn.attention")
        stack.enter_context(attention.sdpa_kernel([attention.SDPBackend.MATH]))
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        compiled: Callable[..., Any] = common.aot_autograd(
            fw_compiler=compile_graph, decompositions=_decompositions(torch)
        )(graph, example_inputs)
    return compiled


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in options if name not in OPTIONS]
    if unknown or options.get("fallback", "error") not in ("error", "eager"):
        raise error(
            "HLO0613",
            f"torch.compile: no option {', '.join(map(repr, unknown))} of the backend mlirhlo"
            if unknown
            else f"torch.compile: fallback is 'error' or 'eager', not {options['fallback']!r}",
            help=f"the backend's options are {', '.join(OPTIONS)}",
        )
    return dict(options)


def _decompositions(torch: Any) -> dict[Any, Any]:
    """PyTorch's decompositions of what has no rule of ours."""
    module = import_module("torch._decomp")
    aten = torch.ops.aten
    named = [name.split(".") for name in _DECOMPOSED]
    packets = [getattr(aten, name, None) for name, *_ in named]
    extra = [
        getattr(packet, overload[0]) if overload else packet
        for packet, (_, *overload) in zip(packets, named, strict=True)
        if packet is not None
    ]
    table: dict[Any, Any] = dict(module.core_aten_decompositions())
    table.update(module.get_decompositions(extra))
    table[aten._transformer_encoder_layer_fwd.default] = encoder_layer
    return {op: how for op, how in table.items() if _name(op) not in RULES}


def _name(target: Any) -> str:
    """The overload's name as the table has it: `add.Tensor`."""
    return str(target).removeprefix("aten.").removeprefix("prims.")


class _Compiler:
    """Makes functions of graphs of ATen operations."""

    def __init__(self, torch: Any, settings: Mapping[str, Any]) -> None:
        self.torch, self.settings = torch, settings

    def __call__(self, graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        missing = sorted(
            {
                _name(node.target)
                for node in graph.graph.nodes
                if _is_operation(node) and _name(node.target) not in RULES and not _is_random(node)
            }
        )
        if missing:
            message = f"torch.compile: no rule for {', '.join(missing)}"
            if self.settings.get("fallback") != "eager":
                raise error(
                    "HLO0612",
                    message,
                    help="torch.compile(…, options={'fallback': 'eager'}) lets PyTorch run the graph",
                )
            warnings.warn(f"{message}: PyTorch runs the graph", stacklevel=2)
        run: Callable[..., Any] = graph.forward
        if not missing:
            run = GraphProgram(self.torch, graph, self.settings)
        boxed = import_module("torch._functorch.aot_autograd").make_boxed_func
        function: Callable[..., Any] = boxed(run)
        return function


def _is_operation(node: Any) -> bool:
    return node.op == "call_function" and hasattr(node.target, "overloadpacket")


def _is_random(node: Any) -> bool:
    return _is_operation(node) and _name(node.target).split(".")[0] in _RANDOM


class GraphProgram:
    """A graph, compiled for each combination of sizes that it is called with."""

    def __init__(self, torch: Any, graph: Any, settings: Mapping[str, Any]) -> None:
        self.torch, self.graph, self.settings = torch, graph, settings
        self.programs: dict[object, _Compiled] = {}

    def __call__(self, *arguments: Any) -> list[Any]:
        """The results for arguments, which are tensors and sizes."""
        tensor = self.torch.Tensor
        key = tuple((a.dtype, a.shape) if isinstance(a, tensor) else a for a in arguments)
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = _Compiled(self, arguments)
        return program(arguments)


class _Compiled:
    """A graph as a module for arguments of certain sizes."""

    def __init__(self, owner: GraphProgram, arguments: Sequence[Any]) -> None:
        self.torch = owner.torch
        self.draws: list[Callable[[], Any]] = []
        """What draws the random numbers, which follow the arguments."""
        self.results: list[tuple[str, Any]] = []
        """Each result: `array` and its index, `argument` and its number, or a value."""
        self.program = self._compile(owner, arguments)

    def _compile(self, owner: GraphProgram, arguments: Sequence[Any]) -> Program:
        builder = Builder("torch_graph", "torch")
        with paused_gc(), Trace(builder) as trace:
            inputs: list[Any] = []
            self._count = 0
            for argument in arguments:
                if not isinstance(argument, self.torch.Tensor):
                    inputs.append(argument)
                    continue
                inputs.append(self._parameter(trace, argument))
            values = self._evaluate(owner.graph, inputs, trace)
            results = [trace.value(value) for value in values]
            builder.add("main", trace.block, trace.tuple(results), is_entry=True)
        settings = owner.settings
        return prepare(
            builder.finish(),
            platform_named(settings.get("platform")),
            settings.get("compiler_options"),
            name="torch_graph",
        )

    def _parameter(self, trace: Trace, like: Any) -> Array:
        dtype, shape = dtype_of(like.dtype), tuple(like.shape)
        value = trace.parameter(self._count, shape_for(dtype, shape))
        self._count += 1
        return Array.traced(trace, value, dtype, shape)

    def _evaluate(self, graph: Any, inputs: Sequence[Any], trace: Trace) -> list[Array]:
        """The arrays that the graph returns; `results` says where each result comes from."""
        torch, values = self.torch, dict[Any, Any]()
        waiting = iter(inputs)
        from_inputs: dict[int, int] = {}
        look_up = import_module("torch.fx").map_arg
        arrays: list[Array] = []
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(waiting)
                from_inputs[id(values[node])] = len(values) - 1
            elif node.op == "get_attr":
                tensor = graph
                for part in node.target.split("."):
                    tensor = getattr(tensor, part)
                values[node] = Array.concrete(to_numpy(torch, tensor))
            elif node.op == "call_function":
                args, kwargs = (
                    look_up(part, values.__getitem__) for part in (node.args, node.kwargs)
                )
                trace.enter(node.name)
                trace.scope = node.name
                values[node] = self._call(node, args, kwargs, trace)
            elif node.op == "output":
                for result in look_up(node.args[0], values.__getitem__):
                    if not isinstance(result, Array):
                        self.results.append(("value", result))
                    elif id(result) in from_inputs:
                        self.results.append(("argument", from_inputs[id(result)]))
                    else:
                        self.results.append(("array", len(arrays)))
                        arrays.append(result)
        return arrays

    def _call(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any], trace: Trace) -> Any:
        if not _is_operation(node):  # arithmetic on sizes, and elements of lists
            return node.target(*args, **kwargs)
        if _is_random(node):
            return self._drawn(node, args, kwargs, trace)
        name = _name(node.target)
        if name.startswith("sym_size"):
            return args[0].shape[args[1]]
        result = RULES[name](self._described(node), *args, **kwargs)
        meta = node.meta.get("val")
        if isinstance(result, Array) and hasattr(meta, "dtype"):
            return ops.convert(result, dtype_of(meta.dtype))
        return result

    def _described(self, node: Any) -> Call:
        torch, meta = self.torch, node.meta.get("val")
        metas: Sequence[Any] = meta if isinstance(meta, (list, tuple)) else (meta,)
        dtypes = [dtype_of(m.dtype) for m in metas if hasattr(m, "dtype")]
        operands: list[Any] = [
            getattr(arg, "meta", {"val": arg})["val"]
            for arg in node.args[:2]
            if hasattr(arg, "meta") or isinstance(arg, (bool, int, float, complex))
        ]
        promoted = dtypes[0] if dtypes else DTYPES["float32"]
        if len(operands) == 2 and any(isinstance(o, torch.Tensor) for o in operands):
            promoted = dtype_of(torch.result_type(*operands))
        is_tensor = bool(operands) and isinstance(operands[0], torch.Tensor)
        strides: Sequence[Any] = operands[0].stride() if is_tensor else ()
        return Call(dtypes, promoted, strides if all(isinstance(s, int) for s in strides) else ())

    def _drawn(
        self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any], trace: Trace
    ) -> Array:
        """Random numbers as one more argument."""
        torch = self.torch
        kept = {key: value for key, value in kwargs.items() if key != "device"}

        def draw() -> Any:
            operands = [
                torch.empty(a.shape, dtype=getattr(torch, _torch_name(a.dtype)))
                if isinstance(a, Array)
                else a
                for a in args
            ]
            return node.target(*operands, **kept)

        self.draws.append(draw)
        state = torch.random.get_rng_state()
        like = draw()
        torch.random.set_rng_state(state)
        return self._parameter(trace, like)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        torch = self.torch
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        data = [to_numpy(torch, tensor) for tensor in (*tensors, *(draw() for draw in self.draws))]
        value = self.program(data)
        arrays: Sequence[Any] = value if isinstance(value, tuple) else (value,)
        results: list[Any] = []
        for kind, source in self.results:
            if kind == "array":
                results.append(to_torch(torch, arrays[source]))
            else:
                results.append(arguments[source] if kind == "argument" else source)
        return results


def _torch_name(dtype: Any) -> str:
    return next(name for name, known in DTYPES.items() if known == dtype)


def to_numpy(torch: Any, tensor: Any) -> np.ndarray[Any, Any]:
    """The elements of a tensor of the CPU, without a copy. Raises `HloError` HLO0614 for one elsewhere."""
    if tensor.device.type != "cpu":
        raise error(
            "HLO0614",
            f"torch.compile: a tensor is on {tensor.device}",
            help="backend mlirhlo runs tensors of the CPU: move the model and its inputs by .cpu()",
        )
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        array: np.ndarray[Any, Any] = plain.view(torch.int16).numpy().view(DTYPES["bfloat16"])
        return array
    data: np.ndarray[Any, Any] = plain.numpy()
    return data


def to_torch(torch: Any, array: np.ndarray[Any, Any]) -> Any:
    """A tensor of an array's elements, without a copy where the array can be written."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if not array.flags.writeable:
        array = array.copy()
    if array.dtype == DTYPES["bfloat16"]:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


__all__ = ["OPTIONS", "GraphProgram", "backend"]
