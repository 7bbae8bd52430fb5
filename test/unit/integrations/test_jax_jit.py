"""Functions traced by JAX and executed here agree with JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.proto.buffer_assignment_pb2 import BufferAssignmentProto
from mlirhlo.integrations.ir import module_of

pytestmark = pytest.mark.oracle

jax = pytest.importorskip("jax")
jnp = jax.numpy

WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
X = np.linspace(0, 2, 6, dtype=np.float32).reshape(2, 3)


def tree_of(x: Any, unused: Any, n: int, *, k: Any = 2.0) -> dict[str, Any]:
    """Closed-over constants, an argument without use, a static one, keywords, a nested result."""
    return {"a": (x @ WEIGHTS) * n * k, "b": 3.0, "c": (x, [x.sum(axis=0)], None)}


def loop(x: Any) -> Any:
    return jax.lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 1.5 + 1, x)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jax.nn.softmax(q @ k.T / np.sqrt(3).astype("f"))
    return scores @ v, scores.argmax(-1)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (loop, (X,)),
    (attention, (X, X, X)),
    (jax.grad(lambda x: jnp.tanh(x @ WEIGHTS).sum()), (X,)),
    (jax.vmap(lambda x: jnp.sort(x)[::-1]), (X,)),
    (lambda x: jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(2)), (X,)),
    (jnp.linalg.qr, (X,)),
    (lambda x: x.astype(jnp.bfloat16) * 3, (X,)),
    (jnp.fft.fft, (X,)),
    (lambda x, i: x.at[i].add(1), (X, np.array([0, 1]))),
    (lambda x: jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(3), x), (X,)),
    (lambda n: n + 1, (7,)),
    (lambda n: n + 1, (np.int64(7),)),
    (lambda b: ~b, (True,)),
    (lambda z: z * 2j, (1 + 2j,)),
    (lambda: (), ()),
    (lambda x: None, (X,)),
    (lambda x: x, (X,)),
    (lambda x: (x,), (X,)),
    (lambda d: d["x"] + d["y"][0], ({"x": X, "y": [1.0]},)),
    (lambda k: jax.random.normal(k, (3,)), (jax.random.key(3),)),
    (lambda k: jax.random.uniform(k, (3,)), (jax.random.PRNGKey(3),)),
]


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_agrees_with_jax(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    from mlirhlo.jax import jit

    same(jit(function)(*args), jax.jit(function)(*args))


def same(ours: Any, theirs: Any) -> None:
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert isinstance(mine, np.ndarray)
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(
            mine.astype(np.complex128), np.asarray(other).astype(np.complex128), 2e-5, 2e-6
        )


def test_trees_static_arguments_keywords_and_donation() -> None:
    from mlirhlo.jax import jit

    for options in ({"static_argnums": 2}, {"static_argnames": "n"}, {"static_argnums": -1}):
        ours = jit(tree_of, donate_argnums=0, **options)
        theirs = jax.jit(tree_of, **options)
        same(ours(X, 1, 3), theirs(X, 1, 3))
        same(ours(X, 1, 4, k=0.5), theirs(X, 1, 4, k=0.5))
    named = jit(tree_of, static_argnames="n")
    same(named(X, 1, n=3), jax.jit(tree_of, static_argnames="n")(X, 1, n=3))
    assert "input_output_alias" in ours.lower(X, 1, 3).compiler_ir("hlo").as_text()


def test_as_decorator_and_of_what_jax_jitted() -> None:
    from mlirhlo.jax import jit

    @jit(platform="XLA", results="jax")
    def double(x: Any) -> Any:
        """Twice."""
        return x * 2

    assert isinstance(double(X), jax.Array)
    assert double.__doc__ == "Twice."
    inner = jax.jit(tree_of, static_argnums=2)
    same(jit(inner, static_argnums=2)(X, 1, 3), inner(X, 1, 3))
    with pytest.raises(HloError, match="static arguments are named"):
        jit(inner)(X, 1, 3)


def test_one_trace_for_equal_arguments() -> None:
    from mlirhlo.jax import jit

    traces: list[Any] = []

    @jit
    def traced(x: Any) -> Any:
        traces.append(x)
        return x + 1

    for value in (X, X + 1, X[0], 1, 1.0):
        traced(value)
    assert len(traces) == 4


def test_lowered_offers_every_form() -> None:
    from mlirhlo import Module
    from mlirhlo.jax import jit

    lowered = jit(tree_of, static_argnums=2, keep_unused=True).lower(X, 1, 3)
    theirs = jax.jit(tree_of, static_argnums=2, keep_unused=True).lower(X, 1, 3)
    assert lowered.as_text("hlo") == theirs.as_text("hlo")
    assert lowered.as_text() == theirs.as_text()
    assert "dot_general" in lowered.as_text("jaxpr")
    module = lowered.compiler_ir("hlo")
    assert isinstance(module, Module)
    assert len(module.hlo.entry.parameters) == 2
    assert lowered.out_tree == theirs.out_tree
    assert lowered.out_info["a"].shape == (2, 4)
    with pytest.raises(HloError, match="did you mean 'stablehlo'"):
        lowered.as_text("stable_hlo_")
    shapes = jit(jnp.sin).lower(jax.ShapeDtypeStruct((4,), np.float32))
    assert shapes.compile()(X[0, :1].repeat(4)).shape == (4,)


def test_compile_with_options_and_passes() -> None:
    from mlirhlo.jax import jit

    lowered = jit(tree_of, static_argnums=2).lower(X, 1, 3)
    real = lowered.compile({"xla_cpu_enable_fast_math": "false"}, platform="XLA")
    assert real.options == {"xla_cpu_enable_fast_math": False}
    assert "is_scheduled=true" in real.as_text()
    ours = lowered.compile({"xla_llvm_disable_expensive_passes": True}, passes="cse,dce")
    same(ours(X, 1, 3), real(X, 1, 3))
    # Our interpreter runs the module that the real compiler optimised.
    parts = real.compiler_ir()(*real.flat_arguments(X, 1, 3))
    same(jax.tree.unflatten(lowered.out_tree, parts), real(X, 1, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla_dump_too": "x"}, "did you mean 'xla_dump_to'"),
        ({"nonsense": 1}, "without the dashes"),
        ({"xla_cpu_enable_fast_math": "maybe"}, "'maybe' is not true or false"),
        ({"xla_backend_optimization_level": 1.5}, "1.5 is not an integer"),
        ({"xla_backend_optimization_level": True}, "True is not an integer"),
        ({"xla_step_marker_location": "NOWHERE"}, "is not one of STEP_MARK_AT_ENTRY"),
        ({"exec_time_optimization_effort": "much"}, "'much' is not a number"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    from mlirhlo.jax import jit

    with pytest.raises(HloError, match=message) as caught:
        jit(jnp.sin).lower(X).compile(options)
    assert caught.value.code == "HLO0602"


def test_programs_and_arguments_that_cannot_be_called() -> None:
    from mlirhlo.jax import jit

    compiled = jit(lambda x: x + 1).lower(X).compile()
    wrong = [(X.T, "shape"), ([X], "were lowered for|was lowered for"), (X * 1j, "of type")]
    for given, message in wrong:
        with pytest.raises(HloError, match=message) as caught:
            compiled(given)
        assert caught.value.code == "HLO0603"
    with pytest.raises(HloError, match="ordered effects"):
        jit(lambda x: jax.debug.print("{}", x, ordered=True))(X)
    with pytest.raises(HloError, match="changes references"):
        jit(lambda r: r[...] * 2)(jax.new_ref(jnp.ones(3)))
    with pytest.raises(HloError, match="transform first"):
        jax.vmap(jit(jnp.sin))(X)
    with pytest.raises(HloError, match="did you mean 'cuda'"):
        jit(jnp.sin, lowering_platform="cudda")
    with pytest.raises(HloError, match="unknown platform 'TPU'"):
        jit(jnp.sin, platform="TPU")
    with pytest.raises(HloError, match="unknown pass"):
        jit(jnp.sin, passes="csee")


def test_callbacks_into_python(capsys: pytest.CaptureFixture[str]) -> None:
    from mlirhlo.jax import jit

    def host(x: Any, n: Any) -> Any:
        if n > 8:
            raise ValueError("too many")
        return np.asarray(x) * 2, np.int32(n)

    def program(x: Any, n: Any) -> Any:
        jax.debug.print("sum {}", x.sum())
        shapes = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), np.int32)
        return jax.pure_callback(host, shapes, x, n)

    ours = jit(program)
    same(ours(X, 3), jax.jit(program)(X, 3))
    assert capsys.readouterr().out.count("sum 6.0") == 2
    with pytest.raises(HloError, match="raised ValueError: too many") as caught:
        ours(X, 9)
    assert caught.value.code == "HLO0610"
    alone = jit(lambda x: jax.pure_callback(np.negative, jax.typeof(x), x) + 1)
    same(alone(X), 1 - X)


def test_without_jax() -> None:
    script = "import sys; sys.modules['jax'] = None; import mlirhlo.jax"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "error[HLO0600]: mlirhlo.jax needs jax, which is not installed" in done.stderr
    assert "help: pip install 'mlirhlo[jax]'" in done.stderr


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_compiler_ir_has_the_methods_of_jaxs_objects(number: int) -> None:
    from mlirhlo.jax import XlaComputation, jit

    function, args = PROGRAMS[number]
    ours = jit(function).lower(*args).compiler_ir("hlo")
    lower = getattr(function, "lower", None) or jax.jit(function).lower
    theirs = lower(*args).compiler_ir("hlo")
    assert isinstance(ours, XlaComputation)
    for large in (False, True):
        assert ours.as_hlo_text(large) == theirs.as_hlo_text(large)
    assert ours.as_hlo_text(print_large_constants=True) == ours.as_hlo_text(True)
    again = type(theirs)(ours.as_serialized_hlo_module_proto())
    assert again.as_hlo_text(True) == theirs.as_hlo_text(True)
    assert ours.name() == ours.name == theirs.name()
    assert repr(ours.program_shape()) == repr(theirs.program_shape())
    assert len(ours.program_shape().parameter_shapes()) == len(
        theirs.program_shape().parameter_shapes()
    )
    assert ours.as_hlo_dot_graph().startswith("digraph")
    same = jit(function).lower(*args).compiler_ir("hlo")
    assert ours.hash() == same.hash()
    module, original = ours.as_hlo_module(), theirs.as_hlo_module()
    assert ours.get_hlo_module().name == original.name
    # The two were lowered by different lines of this test, which their metadata say.
    loaded = module_of(theirs.as_serialized_hlo_module_proto())
    assert loaded.to_string() == original.to_string()
    assert len(module.computations()) == len(original.computations())
    assert len(module.make_nonfusion_computations()) == len(original.make_nonfusion_computations())
    assert module.spmd_output_sharding is original.spmd_output_sharding is None
    assert module.spmd_parameters_shardings is original.spmd_parameters_shardings is None


def test_compiled_is_the_optimised_module() -> None:
    from mlirhlo import parse
    from mlirhlo.jax import jit

    lowered = jit(attention).lower(X, X, X)
    for platform in ("cpu", "interpreter", "XLA"):
        compiled = lowered.compile(platform=platform)
        (module,) = compiled.runtime_executable().hlo_modules()
        flat = compiled.flat_arguments(X, X, X)
        for text in (compiled.as_text(), module.to_string()):
            assert (" fusion(" in text) == (platform != "interpreter")
        parts = parse(compiled.as_text())(*flat)
        same(tuple(parts), jax.jit(attention)(X, X, X))
        assert compiled.cost_analysis()["flops"] > 0


STAGES = ("in_tree", "out_tree", "args_info", "in_avals", "donate_argnums")


def test_every_stage_has_the_names_of_jaxs() -> None:
    """`trace`, `lower`, `compile` and what each result says of arguments, results, cost and memory."""
    from mlirhlo.jax import jit

    def f(x: Any, *, n: int) -> dict[str, Any]:
        return {"scaled": x * n, "total": jnp.sum(x @ x)}

    options: dict[str, Any] = {"static_argnames": "n", "donate_argnums": 0}
    ours, theirs = jit(f, **options), jax.jit(f, **options)
    x = np.ones((8, 8), np.float32)
    assert ours.eval_shape(x, n=2) == theirs.eval_shape(x, n=2)
    traced, original = ours.trace(x, n=2), theirs.trace(x, n=2)
    assert (traced.fun_name, str(traced.jaxpr)) == (original.fun_name, str(original.jaxpr))
    assert traced.out_avals == original.out_avals
    lowered, lowered_there = traced.lower(), original.lower()
    compiled, compiled_there = lowered.compile(), lowered_there.compile()
    for mine, other in (
        (traced, original),
        (lowered, lowered_there),
        (compiled, compiled_there),
    ):
        assert [str(getattr(mine, name)) for name in STAGES] == [
            str(getattr(other, name)) for name in STAGES
        ]
        assert jax.tree.map(lambda s: s.shape, mine.out_info) == {"scaled": (8, 8), "total": ()}
    assert lowered.cost_analysis()["flops"] >= lowered_there.cost_analysis()["flops"] > 0
    same(compiled.call(x, n=2), f(x, n=2))
    tpu = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "stablehlo.dot" in tpu


@pytest.mark.parametrize("platform", ["cpu", "interpreter", "XLA"])
def test_memory_analysis_has_the_names_of_jaxs(platform: str) -> None:
    from mlirhlo.jax import jit

    compiled = jit(attention).lower(X, X, X).compile(platform=platform)
    ours = compiled.memory_analysis()
    theirs = jax.jit(attention).lower(X, X, X).compile().memory_analysis()
    for name in dir(theirs):
        if name.endswith("_in_bytes"):
            assert getattr(ours, name) >= 0
    assert ours.argument_size_in_bytes == theirs.argument_size_in_bytes
    # XLA counts tables of tuples as results, the machine code here has none.
    assert 0 <= theirs.output_size_in_bytes - ours.output_size_in_bytes <= 64
    assert ours.temp_size_in_bytes > 0
    assert ours.peak_memory_in_bytes >= ours.argument_size_in_bytes
    assigned = BufferAssignmentProto.FromString(ours.serialized_buffer_assignment_proto)
    arguments = [a.size for a in assigned.buffer_allocations if a.is_entry_computation_parameter]
    assert arguments == ([] if platform == "interpreter" else 3 * [X.nbytes])
    donated = jit(lambda x, y: x + y, donate_argnums=0).lower(X, X).compile().memory_analysis()
    assert donated.alias_size_in_bytes == donated.output_size_in_bytes == X.nbytes


@pytest.mark.parametrize("platform", ["cpu", "interpreter", "XLA"])
def test_where_arguments_and_results_are(platform: str) -> None:
    from mlirhlo.jax import jit

    def f(x: Any, parts: Any, *, s: Any) -> Any:
        return {"a": x @ parts["y"] + s, "b": (jnp.sum(x),)}

    arguments = jnp.ones((4, 8)), {"y": jnp.ones((8, 4))}
    compiled = jit(f).lower(*arguments, s=1.0).compile(platform=platform)
    original = jax.jit(f).lower(*arguments, s=1.0).compile()
    for name in ("input_shardings", "output_shardings", "input_formats", "output_formats"):
        assert getattr(compiled, name) == getattr(original, name), name


def test_options_of_jit_and_of_compile(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from mlirhlo.jax import jit

    jitted = jit(loop, compiler_options={"xla_dump_to": str(tmp_path / "a"), "num_replicas": 1})
    jitted(X)
    assert list((tmp_path / "a").glob("*jit_loop.before_optimizations.txt"))
    assert "without effect here: num_replicas" in caplog.text
    jitted.lower(X).compile({"xla_dump_to": str(tmp_path / "b"), "xla_dump_hlo_pass_re": "cse"})
    assert list((tmp_path / "b").glob("*.after_cse.*"))


PROGRAM = """
import sys, jax, jax.numpy as jnp, numpy as np
from mlirhlo.jax import jit
def wide(x): return x * 2
print(jit(wide)(np.ones(2)).dtype, jit(wide)(3).dtype)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("x64", "types"), [("1", "float64 int64"), ("0", "float32 int32")])
def test_variables_that_jax_reads(x64: str, types: str, tmp_path: Path) -> None:
    variables = {
        "JAX_ENABLE_X64": x64,
        "JAX_DUMP_IR_TO": str(tmp_path),
        "JAX_DUMP_IR_MODES": "stablehlo,jaxpr",
    }
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == types.split(), done.stderr
    names = [path.name for path in tmp_path.iterdir()]
    assert sum(name.endswith("jit_wide_compile.mlir") for name in names) == 2
    assert sum(name.endswith("wide.jaxpr.txt") for name in names) == 2
