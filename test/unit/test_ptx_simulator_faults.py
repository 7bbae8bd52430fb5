"""Each planted fault is reported with its code and places; the kernel without it is clean."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_faults import FAULTS, Fault
from ptx_kernels import launch

from mlirhlo.diagnostics import Diagnostic, HloError


def findings(fault: Fault, *, faulty: bool, seed: int = 0) -> tuple[Diagnostic, ...]:
    """What a kernel is reported for."""
    x = np.zeros(256, np.uint32)
    try:
        report, _ = launch(
            fault.text(faulty=faulty),
            x,
            grid=fault.grid,
            block=fault.block,
            seed=seed,
            **fault.options,
        )
    except HloError as error:
        return error.diagnostics
    return report.findings


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_fault_is_reported(fault: Fault) -> None:
    found = [one for one in findings(fault, faulty=True) if one.code == fault.code]
    assert found
    places = [found[0].place, *(place for _, place in found[0].notes)]
    assert len([one for one in places if one is not None and one.line]) >= fault.places


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_clean_kernel_is_clean(fault: Fault) -> None:
    assert [str(one) for one in findings(fault, faulty=False, seed=2)] == []
