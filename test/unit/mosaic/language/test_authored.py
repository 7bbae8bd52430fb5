"""Every authored kernel and every kernel of the library: against numpy, and by the TPU compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.mosaic.language.authored import CASES
from unit.mosaic.language.library import LIBRARY_CASES

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import kernels, tpu_compiler
from mlirhlo.mosaic.forms import check_roundtrip
from mlirhlo.mosaic.interpreter import InterpretParams

ALL = CASES | LIBRARY_CASES


def arrays(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", sorted(ALL))
def test_as_numpy_says(name: str) -> None:
    case = ALL[name]
    lines: list[str] = []
    case.call.interpret = InterpretParams(log=lines.append)
    got, want = arrays(case.call(*case.inputs)), arrays(case.want(*case.inputs))
    if want[0] is None:
        assert len(np.unique(got[0])) > 1000
        return
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == np.shape(b)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(
                a.astype(np.float64),
                np.asarray(b, np.float64),
                rtol=case.tolerance,
                atol=case.tolerance,
            )


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert set(kernels.LIBRARY) <= {name.split("__")[0] for name in LIBRARY_CASES} | {
        "ring_all_gather"
    }


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", sorted(ALL)[::6])
def test_every_form_is_read_back(name: str) -> None:
    check_roundtrip(ALL[name].call.lower(*ALL[name].inputs).module, name)


def ring() -> Any:
    return kernels.ring_all_gather.lower(np.zeros((8, 128), np.float32), mesh={"x": 4})


@pytest.mark.one_case_in(2)
@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v4", "v5e", "v5p", "v6e", "tpu7x"])
def test_the_tpu_compiler_takes_it(generation: str) -> None:
    if not tpu_compiler.is_available():
        pytest.skip("jax and libtpu are not installed")
    names = [name for name in sorted(ALL) if generation not in ALL[name].not_on]
    lowered = {name: ALL[name].call.lower(*ALL[name].inputs) for name in names}
    if generation in ("v5e", "v6e"):
        lowered["ring_all_gather"] = ring()
    verdicts = tpu_compiler.compile_all([kernel.job(generation) for kernel in lowered.values()])
    refused = {
        name: verdict.message[:300]
        for name, verdict in zip(lowered, verdicts, strict=True)
        if not verdict.is_accepted
    }
    assert not refused


@pytest.mark.oracle
@pytest.mark.slow
def test_the_tpu_compiler_refuses_what_is_said_to_be_refused() -> None:
    if not tpu_compiler.is_available():
        pytest.skip("jax and libtpu are not installed")
    pairs = [(name, one) for name in sorted(ALL) for one in ALL[name].not_on]
    jobs = [ALL[name].call.lower(*ALL[name].inputs).job(one) for name, one in pairs]
    verdicts = tpu_compiler.compile_all(jobs)
    assert [p for p, v in zip(pairs, verdicts, strict=True) if v.is_accepted] == []


def test_a_kernel_that_cannot_be_compiled_says_why() -> None:
    if tpu_compiler.is_available():
        pytest.skip("the TPU compiler is here")
    with pytest.raises(HloError) as caught:
        tpu_compiler.compile_all([])
    assert caught.value.code == "HLO0739"
