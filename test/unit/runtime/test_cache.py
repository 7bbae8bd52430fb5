"""The cache of compiled objects: what it gives back, and what it does when the disk is not its friend."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from support import ROOT

from mlirhlo.runtime import cache, jit
from mlirhlo.runtime.cache import (
    ObjectCache,
    builder_code,
    default_cache,
    object_code,
    object_key,
    sources,
)
from mlirhlo.runtime.generated import meeting_ir
from mlirhlo.runtime.jit import Cpu, Library, host

pytest.importorskip("llvmlite")

KEY = "k" * 64
TEXT = "define i64 @f() {\n  ret i64 7\n}\n"


def files(directory: Path) -> list[str]:
    """All but the tally."""
    return sorted(p.name for p in directory.iterdir() if p.name != "tally")


def test_gives_back_what_was_put(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "a" / "b")
    assert cache.get(KEY) is None
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
    assert files(tmp_path / "a" / "b") == [KEY + ".o"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b" / (KEY + ".o")).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "renamed"])
def test_damage_is_seen_and_mended(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o700)
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    path = tmp_path / (KEY + ".o")
    data = path.read_bytes()
    if damage == "renamed":
        cache.put("o" * 64, b"other code")
        data = (tmp_path / ("o" * 64 + ".o")).read_bytes()
    path.write_bytes(
        {"cut": data[:-1], "flipped": data[:-1] + b"x", "empty": b"", "renamed": data}[damage]
    )
    assert cache.get(KEY) is None
    assert cache.get(KEY) is None
    assert "HLO0436" in caplog.text
    assert len(caplog.records) == 1
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_directory_open_to_others_is_left_alone(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(mode)
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    assert cache.get(KEY) is None
    assert not files(tmp_path)
    assert len(caplog.records) == 1
    assert "open to their writing" in caplog.text


def test_files_of_others_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o700)
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    (tmp_path / (KEY + ".o")).chmod(0o666)
    assert cache.get(KEY) is None
    link = tmp_path / ("l" * 64 + ".o")
    link.symlink_to(tmp_path / (KEY + ".o"))
    assert cache.get("l" * 64) is None
    os.mkfifo(tmp_path / ("p" * 64 + ".o"), 0o600)
    assert cache.get("p" * 64) is None
    assert len(caplog.records) == 1


def test_a_place_that_is_no_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = ObjectCache(place)
        cache.put(KEY, b"code")
        assert cache.get(KEY) is None
    assert len(caplog.records) == 2


def test_a_full_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache = ObjectCache(tmp_path)
    cache.put(KEY, b"code")
    assert not files(tmp_path)
    assert "No space left" in caplog.text


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    big = ObjectCache(tmp_path)
    for number in range(8):
        big.put(str(number), bytes(1000))
        os.utime(tmp_path / f"{number}.o", (number, number))
    assert big.get("0") is not None  # used now
    (tmp_path / "x.part").write_text("")
    os.utime(tmp_path / "x.part", (1, 1))
    ObjectCache(tmp_path, limit=4000).put("new", bytes(1000))
    left = files(tmp_path)
    assert {"0.o", "new.o"} < set(left)
    assert "1.o" not in left
    assert "x.part" not in left
    assert sum((tmp_path / name).stat().st_size for name in left) <= 4000
    ObjectCache(tmp_path, limit=500).put("huge", bytes(1000))
    assert "huge.o" not in files(tmp_path)


def test_the_limit_holds_after_every_put(tmp_path: Path) -> None:
    """Of two writers that know nothing of each other, whatever the sizes."""
    random = Random(0)
    writers = [ObjectCache(tmp_path / "here", limit=40_000) for _ in range(2)]
    kept = 0
    for number in range(200):
        name = str(random.randrange(80))
        random.choice(writers).put(name, bytes(random.choice([1, 700, 3000, 9000])))
        left = files(tmp_path / "here")
        assert sum((tmp_path / "here" / one).stat().st_size for one in left) <= 40_000
        assert f"{name}.o" in left
        kept += len(left) if number >= 100 else 0
        if number == 150:
            (tmp_path / "here" / "tally").unlink()
    assert kept > 500


def test_files_are_counted_when_there_may_be_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[object] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda of: walks.append(of) or scandir(of))
    for number in range(66):  # each as a process of its own
        ObjectCache(tmp_path / "here", limit=128 << 10).put(str(number), bytes(1900))
    assert len(walks) == 2  # the first finds no tally, the 65th is over the limit, in whole KiB
    (tmp_path / "here" / "tally").unlink()
    ObjectCache(tmp_path / "here", limit=128 << 10).put("new", bytes(1900))
    assert len(walks) == 3


def test_the_key_holds_all_it_depends_on() -> None:
    cpu = host()
    keys = {
        object_key(TEXT, cpu, 2),
        object_key(TEXT + ";", cpu, 2),
        object_key(TEXT, Cpu(cpu.name + "x", cpu.features), 2),
        object_key(TEXT, Cpu(cpu.name, cpu.features + ",-x"), 2),
        object_key(TEXT, cpu, 1),
        object_key(TEXT, cpu, 2, "checked"),
        object_key(TEXT, None, 2),
    }
    assert len(keys) == 7
    assert object_key(TEXT, cpu, 2) in keys


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("MLIRHLO_CACHE_BYTES", "12345")
    cache = default_cache()
    assert cache is not None
    assert (cache.directory, cache.limit) == (tmp_path / "here", 12345)
    for off in ("", "off"):
        monkeypatch.setenv("MLIRHLO_CACHE_DIR", off)
        assert default_cache() is None
    monkeypatch.delenv("MLIRHLO_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = default_cache()
    assert cache is not None
    assert cache.directory == tmp_path / "mlirhlo" / "objects"


def test_compiles_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "objects"))
    made = object_code(TEXT)
    monkeypatch.setattr("mlirhlo.runtime.cache.compile_object", None)
    again = object_code(TEXT)
    assert again == made
    assert Library([again], ["f"]).address("f")
    assert not caplog.records


RACER = """
import logging, sys
from pathlib import Path
from mlirhlo.runtime.cache import ObjectCache
logging.basicConfig()
cache = ObjectCache(Path(sys.argv[1]), limit=40_000)
for turn in range(300):
    key = str(turn % 20)
    data = key.encode() * 2000
    found = cache.get(key)
    assert found in (None, data), key
    if turn % 3:
        cache.put(key, data)
"""


def test_two_processes_race(tmp_path: Path) -> None:
    """They write, sweep and read the same names; nothing but whole files is ever seen."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "raced")],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        _, problems = racer.communicate(timeout=100)
        assert racer.returncode == 0, problems
        assert not problems
    assert not [name for name in files(tmp_path / "raced") if name.endswith(".part")]


def test_logs_nothing_below_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mlirhlo.cache")
    ObjectCache(tmp_path / "none").get(KEY)
    assert not caplog.records


def test_code_of_builders_is_built_again_only_when_sources_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path / "objects"))
    built: list[tuple[object, ...]] = []

    def assembly(*arguments: object) -> str:
        built.append(arguments)
        return f"define i32 @f() {{ ret i32 {len(built)} }}"

    monkeypatch.setattr(meeting_ir, "assembly", assembly)
    first = builder_code("meeting_ir", 1, "")
    assert builder_code("meeting_ir", 1, "") == first
    assert builder_code("meeting_ir", 2, "") != first
    monkeypatch.setattr(cache, "sources", lambda: "others")
    assert builder_code("meeting_ir", 1, "") != first
    assert built == [(1, ""), (2, ""), (1, "")]


def test_the_state_of_sources_is_of_every_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    seen: set[str] = set()
    for name, text in (("a.py", "1"), ("inner/b.py", "1"), ("inner/b.py", "22"), ("a.py", "333")):
        (tmp_path / name).write_text(text)
        sources.cache_clear()
        assert sources(tmp_path) == sources(tmp_path)
        seen.add(sources(tmp_path))
    sources.cache_clear()
    assert len(seen) == 4


IMPORTED = """
import sys, mlirhlo
run = mlirhlo.compile(mlirhlo.parse("f32[64] tanh(f32[64] x)"))
assert float(run([0.0] * 64)[0]) == 0.0
builders = ("_ir", "llvm_builder", "llvm_text", "dialects.llvm", "llvmlite.binding", "hlo_to_loops")
print([name for name in sys.modules if name.endswith(builders)], len(sys.modules))
"""


def test_a_process_whose_code_is_in_the_cache_imports_no_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "MLIRHLO_CACHE_DIR": str(tmp_path / "objects")}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", IMPORTED],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.rpartition(" ")
        for _ in range(2)
    ]
    assert "mlirhlo.runtime.generated.call_ir" in outputs[0][0]
    assert outputs[1][0] == "[]"
    assert int(outputs[1][2]) < 430


def test_what_a_machine_is_known_by_changes_with_its_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From Linux's list where there is one; from LLVM elsewhere."""
    words = jit.host_words()
    assert words == jit.host_words.__wrapped__()
    monkeypatch.setattr(jit, "_PROCESSOR", ("no such line",))
    assert jit.host_words.__wrapped__() == str(host())
    if sys.platform == "linux" and platform.machine() == "x86_64":
        assert "sse2" in words
