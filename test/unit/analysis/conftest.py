"""What the tests that ask XLA in children share."""

from __future__ import annotations

import faulthandler
import resource
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet_children() -> Iterator[None]:
    """Children that XLA aborts neither print their stacks nor leave a core file."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    was_on = faulthandler.is_enabled()
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)
    if was_on:
        faulthandler.enable()
