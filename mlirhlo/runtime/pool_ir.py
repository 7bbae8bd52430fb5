"""LLVM assembly of the arenas of a process; `run_ir.py` runs modules in them."""

from __future__ import annotations

CLASSES, SLOTS = 64, 16
"""The pool keeps this many arenas of each power of two of bytes."""

PAGE_BITS, HUGE_BITS = 12, 21
"""Arenas from this power of two of bytes start at a page, from twice the other at a huge page, lesser ones
at a line. A page, since a load waits for the store before it where both lie equally far into their pages:
large arrays of NumPy begin 16 bytes into one, and what the system's allocator aligns to lines begins 64 into
one, just ahead of the loads."""

POOL = f"""
@kept_limit = global i64 {1 << 30}, align 64
@kept = internal global i64 0, align 64
@pool = internal global [{CLASSES * SLOTS} x ptr] zeroinitializer, align 64

declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)

define ptr @arena_take(i64 %class) {{
entry:
  %first = mul i64 %class, {SLOTS}
  br label %slot
slot:
  %i = phi i64 [ 0, %entry ], [ %next, %empty ]
  %at = add i64 %first, %i
  %place = getelementptr ptr, ptr @pool, i64 %at
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %none = icmp eq ptr %seen, null
  br i1 %none, label %empty, label %try
try:
  %taken = atomicrmw xchg ptr %place, ptr null acquire
  %lost = icmp eq ptr %taken, null
  br i1 %lost, label %empty, label %found
empty:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %slot, label %new
found:
  %size = shl i64 1, %class
  %k = atomicrmw sub ptr @kept, i64 %size monotonic
  ret ptr %taken
new:
  %bytes = shl i64 1, %class
  %huge = icmp ugt i64 %class, {HUGE_BITS}
  %paged = icmp uge i64 %class, {PAGE_BITS}
  %little = select i1 %paged, i64 {1 << PAGE_BITS}, i64 64
  %alignment = select i1 %huge, i64 {1 << HUGE_BITS}, i64 %little
  %made = call ptr @aligned_alloc(i64 %alignment, i64 %bytes)
  %failed = icmp eq ptr %made, null
  %plain = xor i1 %huge, true
  %done = or i1 %failed, %plain
  br i1 %done, label %out, label %advise
advise:
  %ignored = call i32 @madvise(ptr %made, i64 %bytes, i32 14)
  br label %out
out:
  ret ptr %made
}}

define void @arena_give(ptr %arena, i64 %class) {{
entry:
  %first = mul i64 %class, {SLOTS}
  %size = shl i64 1, %class
  %before = atomicrmw add ptr @kept, i64 %size monotonic
  %after = add i64 %before, %size
  %limit = load i64, ptr @kept_limit
  %room = icmp ule i64 %after, %limit
  br i1 %room, label %slot, label %drop
slot:
  %i = phi i64 [ 0, %entry ], [ %next, %full ]
  %at = add i64 %first, %i
  %place = getelementptr ptr, ptr @pool, i64 %at
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %free = icmp eq ptr %seen, null
  br i1 %free, label %try, label %full
try:
  %swap = cmpxchg ptr %place, ptr null, ptr %arena release monotonic
  %kept = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %kept, label %out, label %full
full:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %slot, label %drop
drop:
  %k = atomicrmw sub ptr @kept, i64 %size monotonic
  call void @free(ptr %arena)
  br label %out
out:
  ret void
}}

; NumPy's functions of memory, on the pool.
define internal i64 @class_of(i64 %size) {{
  %least = call i64 @llvm.umax.i64(i64 %size, i64 64)
  %below = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %class = sub i64 64, %zeros
  ret i64 %class
}}

define ptr @memory_new(ptr %context, i64 %size) {{
  %class = call i64 @class_of(i64 %size)
  %made = call ptr @arena_take(i64 %class)
  ret ptr %made
}}

define void @memory_free(ptr %context, ptr %memory, i64 %size) {{
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %out, label %give
give:
  %class = call i64 @class_of(i64 %size)
  call void @arena_give(ptr %memory, i64 %class)
  br label %out
out:
  ret void
}}

define ptr @memory_zeroed(ptr %context, i64 %count, i64 %each) {{
entry:
  %size = mul i64 %count, %each
  %made = call ptr @memory_new(ptr %context, i64 %size)
  %none = icmp eq ptr %made, null
  br i1 %none, label %out, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %size, i1 false)
  br label %out
out:
  ret ptr %made
}}

; The old size is not said: as much is copied as both can hold.
define ptr @memory_resized(ptr %context, ptr %old, i64 %size) {{
entry:
  %made = call ptr @memory_new(ptr %context, i64 %size)
  %none = icmp eq ptr %made, null
  %fresh = icmp eq ptr %old, null
  %done = or i1 %none, %fresh
  br i1 %done, label %out, label %copy
copy:
  %had = call i64 @malloc_usable_size(ptr %old)
  %shared = call i64 @llvm.umin.i64(i64 %had, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %made, ptr %old, i64 %shared, i1 false)
  call void @free(ptr %old)
  br label %out
out:
  ret ptr %made
}}

declare i64 @malloc_usable_size(ptr)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""What needs nothing of Python's."""
