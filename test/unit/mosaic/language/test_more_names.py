"""Names that are made of others, and those that `jax.lax` and `jax.numpy` have with different parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax, nn, scipy, tree
from mlirhlo.mosaic import numpy as jnp

_R = np.random.default_rng(0)
X, Y = (_R.normal(0, 2, (8, 128)).astype(np.float32) for _ in range(2))
X[0, :6], Y[0, :6] = [0, -0.0, 0.5, -0.5, 1.5, 2.5], [1, 1, 0, 0, 2, 0.5]
LOST = X.copy()
LOST[1, 3], LOST[3, 0], LOST[3, 1] = np.nan, np.inf, -np.inf
LOST[2] = np.nan
SHARES = (np.abs(X) / 20 + 0.01).astype(np.float32)
SHARES[0, 0] = 0
WHOLE = _R.integers(-50, 50, (8, 128)).astype(np.int32)
WEIGHTS = np.abs(Y)

Case = tuple[Callable[..., Any], Callable[..., Any], tuple[np.ndarray, ...]]
CASES: dict[str, Case] = {
    name: (getattr(jnp, name), getattr(np, name), (LOST,))
    for name in (
        *("around", "degrees", "radians", "isneginf", "isposinf", "signbit"),
        *("nanmax", "nanmin", "nanmean", "nansum", "nanvar", "nanstd", "nan_to_num"),
    )
}
CASES |= {
    name: (getattr(jnp, name), getattr(np, name), (X, Y))
    for name in (
        *("fmax", "fmin", "fmod", "heaviside", "nextafter", "isclose", "logaddexp2", "divmod"),
        *("inner", "vdot", "allclose", "array_equal"),
    )
}
CASES |= {
    f"{name} along": (
        lambda x, name=name: getattr(jnp, name)(x, axis=1),
        lambda x, name=name: getattr(np, name)(x, axis=1),
        (np.where(np.isnan(LOST), np.float32(-7), LOST),),
    )
    for name in ("nanmax", "nanargmax", "nanargmin", "argmax")
}
CASES |= {
    f"{name}": (
        lambda x, y, name=name: getattr(jnp, name)([x, y]),
        lambda x, y, name=name: getattr(np, name)([x, y]),
        (X, Y),
    )
    for name in ("vstack", "hstack", "dstack", "column_stack")
}
CASES |= {
    "fmax of NaN": (jnp.fmax, np.fmax, (LOST, Y)),
    "isclose of NaN": (
        lambda x: jnp.isclose(x, x, equal_nan=True),
        lambda x: np.isclose(x, x, equal_nan=True),
        (LOST,),
    ),
    "sinc": (jnp.sinc, np.sinc, (X,)),
    "modf": (jnp.modf, np.modf, (X,)),
    "ldexp": (jnp.ldexp, np.ldexp, (X, WHOLE)),
    "divmod of integers": (lambda x: divmod(x, 7), lambda x: divmod(x, 7), (WHOLE,)),
    "round to decimals": (lambda x: jnp.round(x, 2), lambda x: np.round(x, 2), (X,)),
    "diff": (lambda x: jnp.diff(x, n=2), lambda x: np.diff(x, n=2), (X,)),
    "isin": (lambda x: jnp.isin(x, [1, 2]), lambda x: np.isin(x, [1, 2]), (WHOLE,)),
    "isin of a vector": (
        lambda x, y: jnp.isin(x, y[0]),
        lambda x, y: np.isin(x, y[0]),
        (WHOLE, WHOLE + 40),
    ),
    "eye": (lambda x: x + jnp.eye(8, 128, k=2), lambda x: x + np.eye(8, 128, k=2), (X,)),
    "tri": (lambda x: x + jnp.tri(8, 128, -2), lambda x: x + np.tri(8, 128, -2), (X,)),
    "trace": (lambda x: jnp.trace(x, 3), lambda x: np.trace(x, 3), (X,)),
    "kron": (
        lambda x, y: jnp.kron(x[:2, :4], y[:2, :4]),
        lambda x, y: np.kron(x[:2, :4], y[:2, :4]),
        (X, Y),
    ),
    "block": (
        lambda x, y: jnp.block([[x, y], [y, x]]),
        lambda x, y: np.block([[x, y], [y, x]]),
        (X, Y),
    ),
    "array_split": (lambda x: jnp.array_split(x, 3), lambda x: np.array_split(x, 3), (X,)),
    "hsplit": (lambda x: jnp.hsplit(x, 2), lambda x: np.hsplit(x, 2), (X,)),
    "tensordot": (
        lambda x, y: jnp.tensordot(x, y, axes=((1,), (1,))),
        lambda x, y: np.tensordot(x, y, axes=((1,), (1,))),
        (X, Y),
    ),
    "trapezoid": (
        lambda x, y: jnp.trapezoid(x, y, axis=0),
        lambda x, y: np.trapezoid(x, y, axis=0),
        (X, Y),
    ),
    "average": (
        lambda x, w: jnp.average(x, axis=0, weights=w[:, 0]),
        lambda x, w: np.average(x, axis=0, weights=w[:, 0]),
        (X, WEIGHTS),
    ),
    "var where": (
        lambda x, y: jnp.var(x, axis=1, where=y > 0, ddof=1),
        lambda x, y: np.var(x, axis=1, where=y > 0, ddof=1),
        (X, Y),
    ),
    "moveaxis of several": (
        lambda x: jnp.moveaxis(x.reshape(2, 4, 2, 64), (0, 2), (2, 0)),
        lambda x: np.moveaxis(x.reshape(2, 4, 2, 64), (0, 2), (2, 0)),
        (X,),
    ),
    "clip by names": (lambda x: jnp.clip(x, min=-1, max=1), lambda x: np.clip(x, -1, 1), (X,)),
    "cumsum of all": (lambda x: jnp.cumsum(x[0]), lambda x: np.cumsum(x[0]), (SHARES,)),
    "concatenate in a line": (
        lambda x, y: jnp.concatenate([x, y], axis=None),
        lambda x, y: np.concatenate([x, y], axis=None),
        (X, Y),
    ),
    "nan_to_num by names": (
        lambda x: jnp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        (LOST,),
    ),
    "lax.round": (lax.round, lambda x: np.trunc(x + np.copysign(0.5, x)), (X,)),
    "lax.round to even": (
        lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        np.rint,
        (X,),
    ),
    "lax.split": (
        lambda x: lax.split(x, (32, 96), axis=1),
        lambda x: np.split(x, [32], axis=1),
        (X,),
    ),
    "lax.argmax": (
        lambda x: lax.argmax(x, axis=1, index_dtype=jnp.int32),
        lambda x: x.argmax(1).astype(np.int32),
        (X,),
    ),
    "lax.cumsum from the end": (
        lambda x: lax.cumsum(x, axis=1, reverse=True),
        lambda x: x[:, ::-1].cumsum(1)[:, ::-1],
        (SHARES,),
    ),
    "lax.reshape": (
        lambda x: lax.reshape(x, new_sizes=(16, 64), dimensions=(1, 0)),
        lambda x: x.T.reshape(16, 64),
        (X,),
    ),
    "lax by names": (
        lambda x, y: lax.concatenate([lax.clamp(min=-1.0, x=x, max=1.0), y], dimension=1),
        lambda x, y: np.concatenate([x.clip(-1, 1), y], 1),
        (X, Y),
    ),
    "lax.slice_in_dim": (
        lambda x: lax.slice_in_dim(x, 64, None, axis=1),
        lambda x: x[:, 64:],
        (X,),
    ),
    "lax.collapse": (
        lambda x: lax.collapse(x.reshape(2, 4, 128), 0, 2),
        lambda x: x,
        (X,),
    ),
    "logsumexp with factors": (
        lambda x, y: nn.logsumexp(x, axis=1, b=y, return_sign=True),
        lambda x, y: (np.log(abs((np.exp(x) * y).sum(1))), np.sign((np.exp(x) * y).sum(1))),
        (X, Y),
    ),
    "logmeanexp": (
        lambda x, y: nn.logmeanexp(x, axis=1, where=y > 0),
        lambda x, y: np.log(np.exp(x).mean(1, where=y > 0)),
        (X, Y),
    ),
    "xlogy": (
        scipy.special.xlogy,
        lambda x, y: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y))),
        (SHARES, SHARES[::-1].copy()),
    ),
    "entr": (
        scipy.special.entr,
        lambda x: np.where(x == 0, 0, -x * np.log(np.where(x == 0, 1, x))),
        (SHARES,),
    ),
    "methods": (
        lambda x: (x.var(axis=1), x.std(axis=0), x.clip(-1, 1), x.repeat(2, 0), x.dot(x.T)),
        lambda x: (x.var(axis=1), x.std(axis=0), x.clip(-1, 1), x.repeat(2, 0), x.dot(x.T)),
        (X,),
    ),
}


def _arrays(results: Any) -> list[np.ndarray]:
    listed: Any = results if isinstance(results, tuple | list) else [results]
    return [np.asarray(one) for one in listed]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, platform: str) -> None:
    ours, numpys, arrays = CASES[name]
    with np.errstate(all="ignore"):
        wanted = _arrays(numpys(*arrays))

    def kernel(*refs: Any) -> None:
        found: Any = ours(*(ref[...] for ref in refs[: len(arrays)]))
        listed = found if isinstance(found, tuple | list) else [found]
        for ref, value in zip(refs[len(arrays) :], listed, strict=True):
            ref[...] = (
                value.astype(ref.dtype) if value.shape else jnp.full((1, 1), value, ref.dtype)
            )

    types = [
        pl.ShapeDtypeStruct(w.shape or (1, 1), np.float32 if w.dtype.kind == "f" else np.int32)
        for w in wanted
    ]
    found = pl.kernel_call(kernel, types, platform=platform)(*arrays)
    for ours_, one in zip(found, wanted, strict=True):
        whole = one.astype(np.float32 if one.dtype.kind == "f" else np.int32)
        np.testing.assert_allclose(ours_.reshape(whole.shape), whole, rtol=3e-5, atol=2e-6)


def test_parts_that_do_not_add_up() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = lax.split(x_ref[...], (32, 64), axis=1)[0]

    with pytest.raises(
        HloError, match=r"HLO0721.*parts of \[32, 64\] elements of a dimension of 128"
    ):
        pl.kernel_call(kernel, pl.ShapeDtypeStruct((8, 32), np.float32)).lower(X)


def test_trees() -> None:
    pair = {"a": (1, 2), "b": [3]}
    assert tree.map(lambda x, y: x + y, pair, pair) == {"a": (2, 4), "b": [6]}
    assert tree.leaves(pair) == [1, 2, 3]
    leaves, form = tree.flatten(pair)
    assert tree.unflatten(form, [2 * leaf for leaf in leaves]) == {"a": (2, 4), "b": [6]}
    with pytest.raises(HloError, match="HLO0728"):
        tree.map(lambda x, y: x + y, pair, (1, 2))


def test_cost_of_a_function() -> None:
    def attend(q: Any, k: Any) -> Any:
        return nn.softmax(q @ k.T)

    cost = pl.estimate_cost(attend, pl.ShapeDtypeStruct((8, 128), np.float32), X)
    assert (cost.flops, cost.transcendentals) == (2 * 8 * 8 * 128 + 4 * 8 * 8, 8 * 8)
    assert cost.bytes_accessed == 4 * (2 * 8 * 128 + 8 * 8)
