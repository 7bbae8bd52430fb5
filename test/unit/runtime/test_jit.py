"""Machine code is loaded wherever this process has room."""

import subprocess
import sys

import pytest

SCATTERED = '''
import ctypes
from mlirhlo.runtime import jit

PAGE, RESERVED = 4096, 0x4022  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]

TEXT = """
@table = private unnamed_addr constant [2 x double] [double 1.0, double 3.0]
define double @f{0}(i64 %i) {{
  %p = getelementptr [2 x double], ptr @table, i64 0, i64 %i
  %v = load double, ptr %p
  ret double %v
}}
"""
objects = [jit.compile_object(TEXT.format(i)) for i in range(20)]
jit._session()
below = libc.mmap(0, 4 << 30, 0, RESERVED, -1, 0)
taken = []
while (page := libc.mmap(0, PAGE, 0, RESERVED, -1, 0)) > below:
    taken.append(page)
kept = []
for i, data in enumerate(objects):
    # The only room above the 4 GiB, enough for one section and not for two.
    libc.munmap(taken[i * len(taken) // len(objects)], PAGE)
    kept.append(jit.Library([data], [f"f{i}"]))
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(kept[-1].address(f"f{i}"))
    assert (function(0), function(1)) == (1.0, 3.0)
print("loaded", len(kept))
'''


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_sections_find_room_together():
    """Free memory in pieces far apart must not part the sections of an object (LLVM aborts then)."""
    run = subprocess.run(
        [sys.executable, "-c", SCATTERED], capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "loaded 20\n", run.stderr


LOOP = """
define void @f(ptr %a, i64 %n, i64 %m) {
b0:
  br label %b1
b1:
  %i = phi i64 [ 0, %b0 ], [ %j, %b1 ]
  %p = mul i64 %i, %m
  %q = getelementptr float, ptr %a, i64 %p
  %x = load <16 x float>, ptr %q, align 4
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %q, align 4
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %b1, label %b2
b2:
  ret void
}
"""

OPTIONS = f'''
import os
from mlirhlo.runtime import jit

text = """{LOOP}"""
llvm = jit._binding()

def plain():
    return jit._target_machine(jit.host(), 2).emit_assembly(llvm.parse_assembly(text))

before = plain()
ours = jit.compile_assembly(text)
assert plain() == before, "the options have stayed"
assert ours != before, "this loop tells nothing"
for options in (*jit._OF_ALL, *jit._OF_ALL_PLAIN):
    path = jit._options_file(options)
    if path is not None:
        number = int(path.rpartition("/")[2])
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)
assert jit.compile_assembly(text) == ours, "without the file"
assert plain() == before
for options in (*jit._OF_ALL, *jit._OF_ALL_PLAIN):
    if path is not None:
        os.close(int(jit._options_file(options).rpartition("/")[2]))
assert jit.compile_assembly(text) == ours, "with the file closed"
assert plain() == before
print("equal")
'''


def test_options_of_llvm_are_ours_for_as_long_as_we_compile():
    """Other users of LLVM in the process get theirs, also where the file of options was taken away."""
    run = subprocess.run(
        [sys.executable, "-c", OPTIONS], capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "equal\n", run.stderr
