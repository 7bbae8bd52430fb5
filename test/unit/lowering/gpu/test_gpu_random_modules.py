"""A sample of `hlo-fuzz`: random whole modules on the simulated GPU."""

from __future__ import annotations

import pytest
from support import SEED

from mlirhlo.debug.fuzz.platforms import judge, module_of

pytest.importorskip("llvmlite")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "kernels"), [(4, 5), pytest.param(340, 500, marks=pytest.mark.sweep)]
)
def test_modules_compute_what_the_interpreter_does(count: int, kernels: int) -> None:
    modules = [module_of(SEED, number) for number in range(count)]
    outcomes = [judge(module.text, module.inputs, "CUDA") for module in modules]
    assert [one.detail for one in outcomes if one.kind == "fails"] == []
    assert sum(one.kind == "equal" for one in outcomes) > count // 2
    assert len({digest for one in outcomes for digest in one.kernels}) >= kernels
