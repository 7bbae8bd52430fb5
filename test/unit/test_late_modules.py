"""Modules under `LATE` are imported when they are first used, and are otherwise what an import gives."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from mlirhlo.importing import LATE

SOURCE = (
    "import sys\nTHREADS = 0\ndef double(x):\n    return 2 * x\nclass Wrong(Exception):\n    pass\n"
)
USER = """
from mlirhlo.importing import LATE

with LATE:
    from {package} import one as uno, two

def f(x):
    try:
        raise uno.Wrong
    except uno.Wrong:
        return uno.double(x)
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names of a file that imports two modules late."""
    package = tmp_path / "late_modules_under_test"
    package.mkdir()
    for name, text in (("__init__", ""), ("one", SOURCE), ("two", "raise ValueError\n")):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("", ".one", ".two"):
        monkeypatch.delitem(sys.modules, package.name + name, raising=False)
    names: dict[str, object] = {}
    exec(USER.format(package=package.name), names)
    return names


def test_a_module_is_imported_at_its_first_use(user: dict[str, object]) -> None:
    assert "late_modules_under_test" not in sys.modules
    assert not hasattr(user["uno"], "__wrapped__")
    assert "late_modules_under_test" not in sys.modules
    assert user["f"](3) == 6  # type: ignore[operator]
    assert "late_modules_under_test.two" not in sys.modules


def test_names_are_those_of_the_module_now(
    user: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user["f"](3) == 6  # type: ignore[operator]
    monkeypatch.setattr("late_modules_under_test.one.double", lambda x: x)
    assert user["f"](3) == 3  # type: ignore[operator]


def test_faults_of_a_late_module_are_raised_where_it_is_used(user: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # what the module raises
        user["two"].anything  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        user["uno"].nothing  # type: ignore[attr-defined]  # noqa: B018


def test_other_threads_import_meanwhile(user: dict[str, object]) -> None:
    del user
    done: list[int] = []

    def work() -> None:
        from late_modules_under_test.one import double  # type: ignore[import-not-found]

        done.append(double(2))

    with LATE:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(10)
    assert done == [4]
    import late_modules_under_test.one as loaded  # type: ignore[import-not-found]

    assert loaded.THREADS == 0
