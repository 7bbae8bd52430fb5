"""Each planted fault is reported with its code and places; the kernel without it is clean."""

from __future__ import annotations

import pytest
from ptx_faults import FAULTS, Fault
from ptx_findings import findings, is_reported


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_fault_is_reported(fault: Fault) -> None:
    assert is_reported(fault)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_clean_kernel_is_clean(fault: Fault) -> None:
    assert [str(one) for one in findings(fault, faulty=False, seed=2)] == []
