"""Passes of ours inside the real compiler: the program that runs is the one we made."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo import Module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HloModule, build
from mlirhlo.dialects.hlo.ops import MultiplyOp
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, RulePass, rule

pytestmark = pytest.mark.oracle

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, 6, 7, 8], np.float32)


@jax.jit
def product(x: Any, y: Any) -> Any:
    return jnp.abs(x) * y


def text_rewrite(module: Module) -> str:
    return module.as_text().replace(" multiply(", " add(")


def in_place(module: Module) -> None:
    for op in list(module.hlo.instructions):
        if isinstance(op, MultiplyOp):
            new = build.make("add", op.inputs, op.shape)
            op.parent_block().insert_op_before(new, op)
            op.results[0].replace_all_uses_with(new.results[0])
            op.parent_block().erase_op(op)


@rule(MultiplyOp)
def multiply_is_add(op: MultiplyOp, rewriter: Rewriter) -> None:
    """x * y => x + y"""
    rewriter.replace(op, build.make("add", op.inputs, op.shape))


@dataclass(frozen=True)
class MultiplyIsAddPass(RulePass):
    """Adds instead."""

    name = "multiply-is-add"
    rules = (multiply_is_add,)


@dataclass(frozen=True)
class LookingPass(HloPass):
    """Changes nothing."""

    name = "looking"

    def run(self, module: HloModule, trace: Trace) -> bool:
        return False


@pytest.mark.parametrize("stage", ["pre-scheduler", "POST_SCHEDULER"])
@pytest.mark.parametrize(
    "passes",
    [text_rewrite, in_place, MultiplyIsAddPass, MultiplyIsAddPass(), [LookingPass(), in_place]],
    ids=lambda p: getattr(p, "__name__", type(p).__name__),
)
def test_the_result_is_that_of_the_rewritten_program(passes: Any, stage: str) -> None:
    from mlirhlo.jax import register_pass

    np.testing.assert_array_equal(product(X, Y), X * Y)
    with register_pass(passes, stage, "cpu", modules="^jit_product$", keep=True) as registered:
        np.testing.assert_array_equal(product(X, Y), X + Y)
        (run,) = registered.runs
        assert (run.module_name, run.changed, run.error) == ("jit_product", True, None)
        assert run.before is not None
        assert run.after is not None
        np.testing.assert_array_equal(run.before(X, Y), X * Y)
        np.testing.assert_array_equal(run.after(X, Y), X + Y)
    np.testing.assert_array_equal(product(X, Y), X * Y)


def test_passes_run_in_order_and_names_are_replaced() -> None:
    from mlirhlo.jax import register_pass, registered_passes

    first = register_pass(text_rewrite, platforms="cpu", name="mine")
    second = register_pass("cse,dce", platforms="cpu", name="mine")
    third = register_pass(LookingPass(), platforms="cpu")
    try:
        assert registered_passes() == (second, third)
        assert not jax.config.jax_enable_compilation_cache
        np.testing.assert_array_equal(product(X, Y), X * Y)
        assert not first.runs
        assert [run.changed for run in (*second.runs, *third.runs)] == [False, False]
        second.unregister()
        assert not jax.config.jax_enable_compilation_cache
    finally:
        second.unregister()
        third.unregister()
    assert registered_passes() == ()
    assert jax.config.jax_enable_compilation_cache


def broken(module: Module) -> None:
    raise ValueError("no dot")


def leaves(module: Module) -> None:
    sys.exit(3)


def other_signature(module: Module) -> Module:
    return mlirhlo.parse("ENTRY e { ROOT p = f32[4] parameter(0) }")


def invalid(module: Module) -> None:
    for op in module.hlo.instructions:
        if isinstance(op, MultiplyOp):
            op.operands = [op.operands[0]] * 3


@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        (broken, "HLO0604", r"test_jax_passes.py:\d+\) raised ValueError: no dot"),
        (leaves, "HLO0604", "raised SystemExit: 3"),
        (lambda module: 7, "HLO0604", "returned a value of type int"),
        (lambda module: "ENTRY {", "HLO0604", "error.HLO00"),
        (other_signature, "HLO0605", "signature changed from"),
        (invalid, "HLO0605", "it left a wrong module: "),
    ],
    ids=["raises", "exits", "no-module", "bad-text", "signature", "invalid"],
)
def test_a_failing_pass_ends_the_compilation(function: Any, code: str, message: str) -> None:
    from mlirhlo.jax import jit, register_pass

    with register_pass(function, platforms="cpu", name="mine") as registered:
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            product(X, Y)
        (failed,) = registered.errors
        assert failed.code == code
        assert "pass 'mine' on module 'jit_product' at stage pre-scheduler" in str(failed)
        # Through our own door the error is itself.
        with pytest.raises(HloError, match=message) as caught:
            jit(product, platform="XLA")(X, Y)
        assert caught.value.code == code
    np.testing.assert_array_equal(product(X, Y), X * Y)


def test_a_failing_pass_may_be_left_out() -> None:
    from mlirhlo.jax import PassWarning, register_pass

    with register_pass(broken, platforms="cpu", on_error="skip") as registered:
        with pytest.warns(PassWarning, match="no dot"):
            np.testing.assert_array_equal(product(X, Y), X * Y)
        assert len(registered.errors) == 1


def test_a_pass_may_run_what_jax_compiled_but_compile_nothing() -> None:
    from mlirhlo.jax import register_pass

    cosine = jax.jit(jnp.cos)

    def computing(module: Module) -> bool:
        assert float(cosine(np.float32(0))) == 1
        return False

    cosine(np.float32(0))
    with register_pass(computing, platforms="cpu", recompile=False) as registered:
        np.testing.assert_array_equal(jax.jit(lambda x: x * 3)(X), X * 3)
        assert [(run.changed, run.error) for run in registered.runs] == [(False, None)]
    with register_pass(computing, platforms="cpu") as registered:
        with pytest.raises(jax.errors.JaxRuntimeError, match="compute with numpy"):
            product(X, Y)
        assert "test_jax_passes.py:" in str(registered.errors[0])


SQUARE = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
IMAGE = np.linspace(-1, 1, 96, dtype=np.float32).reshape(1, 6, 8, 2)


def convolution(x: Any) -> Any:
    kernel = jnp.ones((3, 3, 2, 2)) * x[0, 0, 0, 0]
    y = jax.lax.conv_general_dilated(
        x, kernel, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


PROGRAMS = {
    "convolution": (convolution, IMAGE),
    "gradient": (jax.grad(lambda x: convolution(x).sum()), IMAGE),
    "scan": (lambda x: jax.lax.scan(lambda c, r: (jnp.tanh(c @ x + r), c.sum()), x[0], x), SQUARE),
    "while": (lambda x: jax.lax.while_loop(lambda v: v.sum() < 99, lambda v: v * 2, x), SQUARE),
    "switch": (
        lambda x: jax.lax.switch(x[0, 0].astype(int) % 3, [jnp.sin, jnp.cos, jnp.exp], x),
        SQUARE,
    ),
    "sort": (lambda x: (jnp.argsort(x, 1), jax.lax.top_k(x, 2)), SQUARE),
    "random": (lambda x: x + jax.random.normal(jax.random.key(1), x.shape), SQUARE),
    "linalg": (lambda x: (jnp.linalg.eigh(x), jnp.linalg.solve(x, x[0])), SQUARE),
    "scatter": (lambda x: x.at[jnp.array([0, 2, 0])].add(1).at[:, 1].set(3.0), SQUARE),
    "narrow": (lambda x: (x.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16)).astype("f"), SQUARE),
    "integers": (lambda x: (x.astype(jnp.int8) % 3, (x * 7).astype(jnp.int4)), SQUARE),
    "callback": (lambda x: jax.pure_callback(np.negative, jax.typeof(x), x), SQUARE),
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["pre-scheduler", "post-scheduler"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_compiler_takes_back_what_it_gave(name: str, stage: str) -> None:
    from mlirhlo.jax import register_pass

    function, x = PROGRAMS[name]
    program = jax.jit(function)
    expected = jax.tree.map(np.asarray, program(x))
    for again in (lambda module: True, lambda module: module.as_text()):
        with register_pass(again, stage, "cpu", name="again") as registered:
            result = program(x)
        assert any(run.changed or run.error is None for run in registered.runs)
        jax.tree.map(np.testing.assert_array_equal, result, expected)


@pytest.mark.slow
def test_programs_of_several_devices() -> None:
    script = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from mlirhlo.jax import register_pass
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
x = jax.device_put(np.arange(32, dtype="f").reshape(8, 4), NamedSharding(mesh, P("x")))
f = jax.jit(lambda x: (x @ x.T).sum(0) * 2)
expected = np.asarray(f(x))
for stage in "pre-scheduler", "post-scheduler":
    with register_pass(lambda m: m.as_text(), stage, "cpu") as registered:
        np.testing.assert_array_equal(f(x), expected)
    print([r.changed for r in registered.runs], registered.errors)
with register_pass(lambda m: m.as_text().replace("constant(2)", "constant(3)"), platforms="cpu"):
    np.testing.assert_array_equal(f(x), expected * 1.5)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "()" in done.stdout


@pytest.mark.slow
def test_buffers_stay_apart() -> None:
    """Decompositions overwrite their operand, so equal copies of it are not one."""
    from mlirhlo.jax import PassWarning, register_pass

    def decompositions(x: Any) -> Any:
        return jnp.linalg.svd(x), jnp.linalg.solve(x, x[0]), jnp.linalg.det(x)

    program = jax.jit(decompositions)
    expected = jax.tree.map(np.asarray, program(SQUARE))
    with (
        register_pass("cse", platforms="cpu", modules="decompositions") as registered,
        pytest.raises(jax.errors.JaxRuntimeError, match=r"copies are gone|overwrites"),
    ):
        program(SQUARE)
    assert registered.errors[0].code == "HLO0605"
    with (
        register_pass("cse", platforms="cpu", modules="decompositions", on_error="skip"),
        pytest.warns(PassWarning, match="HLO0605"),
    ):
        jax.tree.map(np.testing.assert_array_equal, program(SQUARE), expected)


def test_overwritten_operands_are_not_shared() -> None:
    from mlirhlo.integrations.jax.buffers import check_buffers

    head = "ENTRY e {\n  x = f32[4] parameter(0)\n  i = s32[] constant(0)\n  u = f32[1] constant({1})\n"
    update = "dynamic-update-slice({}, u, i)\n"
    apart = head + "  a = f32[4] abs(x)\n  b = f32[4] abs(x)\n"
    before = mlirhlo.parse(
        apart + f"  c = f32[4] {update.format('a')}  d = f32[4] {update.format('b')}"
        "  ROOT r = f32[4] add(c, d)\n}"
    )
    after = mlirhlo.parse(
        apart + f"  c = f32[4] {update.format('a')}  d = f32[4] {update.format('a')}"
        "  ROOT r = f32[4] add(c, d)\n}"
    )
    check_buffers(before, before)
    with pytest.raises(HloError, match="%c overwrites an operand that others read"):
        check_buffers(before, after)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"passes": "csee"}, "HLO0401", "unknown pass"),
        ({"passes": 3}, "HLO0601", "type int is no pass"),
        ({"stage": "pre_schedule"}, "HLO0601", "did you mean 'pre-scheduler'"),
        ({"platforms": "cqu"}, "HLO0601", "did you mean 'cpu'"),
        ({"modules": "("}, "HLO0601", "no regular expression"),
        ({"on_error": "ignore"}, "HLO0601", "known: raise, skip"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_wrong_registrations(options: dict[str, Any], code: str, message: str) -> None:
    from mlirhlo.jax import register_pass, registered_passes

    with pytest.raises(HloError, match=message) as caught:
        register_pass(**{"passes": "cse", "platforms": "cpu", **options})
    assert caught.value.code == code
    assert registered_passes() == ()


@pytest.mark.slow
def test_the_cache_on_disk_never_hides_a_pass(tmp_path: Any) -> None:
    script = f"""
import jax, numpy as np
jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
from mlirhlo.jax import register_pass
f = jax.jit(lambda x: x * 3)
x = np.ones(4, np.float32)
print(f(x)[0], len(list(__import__("pathlib").Path({str(tmp_path)!r}).iterdir())) > 0)
with register_pass(lambda m: m.as_text().replace("constant(3)", "constant(5)"), platforms="cpu"):
    print(f(x)[0])
print(f(x)[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["3.0", "True", "5.0", "3.0"], done.stderr
