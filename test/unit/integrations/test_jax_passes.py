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
        np.testing.assert_array_equal(product(X, Y), X * Y)
        assert not first.runs
        assert [run.changed for run in (*second.runs, *third.runs)] == [False, False]
    finally:
        second.unregister()
        third.unregister()
    assert registered_passes() == ()


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
