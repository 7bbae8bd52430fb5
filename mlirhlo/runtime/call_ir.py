"""LLVM assembly of what stands between Python and a compiled module: a fast call.

All modules share this code; what differs is a descriptor of 8-byte words, then one row of `ROW` words
an array (parameters, then results), then their dimensions:

    0 main            3 result is a tuple   6 lets others run (the GIL)
    1 parameters      4 bytes of the arena  7 type of arrays
    2 results         5 its class           8 the string "out"
    9 NumPy's handler of large results' memory, a capsule
    row: dtype, rank, offset of the dimensions in bytes, bytes of the data,
         of a result 1 + the number of the parameter that it may lie over, else 0,
         offset of the strides in bytes where the order in memory is not C's, else 0

`run` (`run_ir.py`) gives `main` an arena. `call` is a METH_FASTCALL|METH_KEYWORDS function whose self is a tuple:
the descriptor as bytes, the callable for whatever does not fit exactly, and what has to stay alive.
Layouts of objects: CPython's object.h, tupleobject.h, bytesobject.h; NumPy's ndarraytypes.h.
"""

from __future__ import annotations

from mlirhlo.runtime.run_ir import DONE, STOPPED

HEAD, ROW = 16, 6
"""Words in front of the rows; words of a row."""

LARGE = 1 << 12
"""Bytes from which on results lie in memory of the pool, which is aligned to lines at least (the system's is
to 16 bytes) and whose pages are not taken from the system anew. Asking for it costs some 200 ns."""

OBJECT_TYPE, VAR_SIZE, TUPLE_ITEMS, BYTES_DATA = 8, 16, 24, 32
ARRAY_DATA, ARRAY_RANK, ARRAY_DIMS, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 40, 56, 64
"""Offsets in objects; checked against live ones before `call` is used."""

READ, WRITTEN = 0x101, 0x501
"""Flags of arrays that can be taken as they are: C order, aligned; writable."""

C_ORDER = 0x1
"""The flag of C order; arrays of another order have their strides compared instead."""

CALL = f"""
declare i32 @run(ptr, ptr, ptr)
declare ptr @numpy_new(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @numpy_set_handler(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyErr_NoMemory()
declare i32 @PyErr_CheckSignals()
declare void @PyErr_SetNone(ptr)
@PyExc_KeyboardInterrupt = external global ptr
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
@PyTuple_Type = external global i8

; Whether an object is an array that can be taken as it is.
define internal i1 @fits(ptr %d, ptr %row, ptr %o, i32 %flags) {{
entry:
  %type_at = getelementptr i8, ptr %o, i64 {OBJECT_TYPE}
  %type = load ptr, ptr %type_at
  %array_at = getelementptr i64, ptr %d, i64 7
  %array = load ptr, ptr %array_at
  %is_array = icmp eq ptr %type, %array
  br i1 %is_array, label %typed, label %no
typed:
  %dtype_at = getelementptr i8, ptr %o, i64 {ARRAY_DTYPE}
  %dtype = load ptr, ptr %dtype_at
  %dtype_wanted = load ptr, ptr %row
  %same_dtype = icmp eq ptr %dtype, %dtype_wanted
  %rank_at = getelementptr i8, ptr %o, i64 {ARRAY_RANK}
  %rank_32 = load i32, ptr %rank_at
  %rank = sext i32 %rank_32 to i64
  %rank_wanted_at = getelementptr i64, ptr %row, i64 1
  %rank_wanted = load i64, ptr %rank_wanted_at
  %same_rank = icmp eq i64 %rank, %rank_wanted
  %flags_at = getelementptr i8, ptr %o, i64 {ARRAY_FLAGS}
  %has = load i32, ptr %flags_at
  %strides_offset_at = getelementptr i64, ptr %row, i64 5
  %strides_offset = load i64, ptr %strides_offset_at
  %is_c = icmp eq i64 %strides_offset, 0
  %loose = and i32 %flags, {~C_ORDER & 0xFFFF}
  %asked = select i1 %is_c, i32 %flags, i32 %loose
  %has_wanted = and i32 %has, %asked
  %good_flags = icmp eq i32 %has_wanted, %asked
  %a = and i1 %same_dtype, %same_rank
  %b = and i1 %a, %good_flags
  br i1 %b, label %sizes, label %no
sizes:
  %dims_at = getelementptr i8, ptr %o, i64 {ARRAY_DIMS}
  %dims = load ptr, ptr %dims_at
  %offset_at = getelementptr i64, ptr %row, i64 2
  %offset = load i64, ptr %offset_at
  %wanted = getelementptr i8, ptr %d, i64 %offset
  %strides_at = getelementptr i8, ptr %o, i64 {ARRAY_STRIDES}
  %strides = load ptr, ptr %strides_at
  %strides_wanted = getelementptr i8, ptr %d, i64 %strides_offset
  br label %next
next:
  %i = phi i64 [ 0, %sizes ], [ %i1, %stride_fits ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %size, label %yes
size:
  %n_at = getelementptr i64, ptr %dims, i64 %i
  %n = load i64, ptr %n_at
  %w_at = getelementptr i64, ptr %wanted, i64 %i
  %w = load i64, ptr %w_at
  %i1 = add i64 %i, 1
  %same = icmp eq i64 %n, %w
  br i1 %same, label %stride, label %no
; strides of one element say nothing
stride:
  %one = icmp eq i64 %n, 1
  %free = or i1 %is_c, %one
  br i1 %free, label %stride_fits, label %stride_asked
stride_asked:
  %s_at = getelementptr i64, ptr %strides, i64 %i
  %s = load i64, ptr %s_at
  %v_at = getelementptr i64, ptr %strides_wanted, i64 %i
  %v = load i64, ptr %v_at
  %same_stride = icmp eq i64 %s, %v
  br i1 %same_stride, label %stride_fits, label %no
stride_fits:
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

; An array; large ones in memory of the pool.
define internal ptr @new_array(ptr %d, ptr %row) {{
entry:
  %dtype = load ptr, ptr %row
  call void @Py_IncRef(ptr %dtype)
  %rank_at = getelementptr i64, ptr %row, i64 1
  %rank = load i32, ptr %rank_at
  %offset_at = getelementptr i64, ptr %row, i64 2
  %offset = load i64, ptr %offset_at
  %dims = getelementptr i8, ptr %d, i64 %offset
  %strides_offset_at = getelementptr i64, ptr %row, i64 5
  %strides_offset = load i64, ptr %strides_offset_at
  %is_c = icmp eq i64 %strides_offset, 0
  %given = getelementptr i8, ptr %d, i64 %strides_offset
  %strides = select i1 %is_c, ptr null, ptr %given
  %type_at = getelementptr i64, ptr %d, i64 7
  %type = load ptr, ptr %type_at
  %bytes_at = getelementptr i64, ptr %row, i64 3
  %bytes = load i64, ptr %bytes_at
  %handler_at = getelementptr i64, ptr %d, i64 9
  %handler = load ptr, ptr %handler_at
  %some = icmp ne ptr %handler, null
  %large = icmp uge i64 %bytes, {LARGE}
  %pooled = and i1 %some, %large
  br i1 %pooled, label %pool, label %plain
plain:
  %p = call ptr @numpy_new(ptr %type, ptr %dtype, i32 %rank, ptr %dims, ptr %strides, ptr null, i32 0, ptr null)
  ret ptr %p
pool:
  %old = call ptr @numpy_set_handler(ptr %handler)
  %failed = icmp eq ptr %old, null
  br i1 %failed, label %none, label %set
none:
  call void @Py_DecRef(ptr %dtype)
  ret ptr null
set:
  %q = call ptr @numpy_new(ptr %type, ptr %dtype, i32 %rank, ptr %dims, ptr %strides, ptr null, i32 0, ptr null)
  %ours = call ptr @numpy_set_handler(ptr %old)
  call void @Py_DecRef(ptr %old)
  %lost = icmp eq ptr %ours, null
  br i1 %lost, label %out, label %back
back:
  call void @Py_DecRef(ptr %ours)
  br label %out
out:
  ret ptr %q
}}

; `run`, while other threads of Python may run if it takes long; false with an exception set.
define internal i1 @run_unlocked(ptr %d, ptr %parameters, ptr %results) {{
entry:
  %long_at = getelementptr i64, ptr %d, i64 6
  %long = load i64, ptr %long_at
  %is_long = icmp ne i64 %long, 0
  br i1 %is_long, label %unlock, label %stay
stay:
  %r = call i32 @run(ptr %d, ptr %parameters, ptr %results)
  br label %ran
unlock:
  %thread = call ptr @PyEval_SaveThread()
  %s = call i32 @run(ptr %d, ptr %parameters, ptr %results)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
ran:
  %status = phi i32 [ %r, %stay ], [ %s, %unlock ]
  %done = icmp eq i32 %status, {DONE}
  br i1 %done, label %out, label %undone
undone:
  %stopped = icmp eq i32 %status, {STOPPED}
  br i1 %stopped, label %interrupt, label %no_memory
; Python's handler says what is raised; if that is nothing, the results are lost all the same
interrupt:
  %raised = call i32 @PyErr_CheckSignals()
  %told = icmp ne i32 %raised, 0
  br i1 %told, label %out, label %raise
raise:
  %class = load ptr, ptr @PyExc_KeyboardInterrupt
  call void @PyErr_SetNone(ptr %class)
  br label %out
no_memory:
  %null = call ptr @PyErr_NoMemory()
  br label %out
out:
  ret i1 %done
}}

define ptr @call(ptr %self, ptr %args, i64 %count, ptr %names) {{
entry:
  %bytes_at = getelementptr i8, ptr %self, i64 {TUPLE_ITEMS}
  %bytes = load ptr, ptr %bytes_at
  %d = getelementptr i8, ptr %bytes, i64 {BYTES_DATA}
  %p_at = getelementptr i64, ptr %d, i64 1
  %p = load i64, ptr %p_at
  %r_at = getelementptr i64, ptr %d, i64 2
  %r = load i64, ptr %r_at
  %tuple_at = getelementptr i64, ptr %d, i64 3
  %tuple_word = load i64, ptr %tuple_at
  %is_tuple = icmp ne i64 %tuple_word, 0
  %rows = getelementptr i64, ptr %d, i64 {HEAD}
  %p_words = mul i64 %p, {ROW}
  %result_rows = getelementptr i64, ptr %rows, i64 %p_words
  %right_count = icmp eq i64 %count, %p
  br i1 %right_count, label %begin, label %slow
begin:
  %inputs = alloca ptr, i64 %p, align 8
  %outputs = alloca ptr, i64 %r, align 8
  %objects = alloca ptr, i64 %r, align 8
  br label %next_input
next_input:
  %i = phi i64 [ 0, %begin ], [ %i1, %input_fits ]
  %more_inputs = icmp slt i64 %i, %p
  br i1 %more_inputs, label %input, label %inputs_done
input:
  %arg_at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg_at
  %row_at = mul i64 %i, {ROW}
  %row = getelementptr i64, ptr %rows, i64 %row_at
  %input_ok = call i1 @fits(ptr %d, ptr %row, ptr %arg, i32 {READ})
  br i1 %input_ok, label %input_fits, label %slow
input_fits:
  %data_at = getelementptr i8, ptr %arg, i64 {ARRAY_DATA}
  %data = load ptr, ptr %data_at
  %input_at = getelementptr ptr, ptr %inputs, i64 %i
  store ptr %data, ptr %input_at
  %i1 = add i64 %i, 1
  br label %next_input
inputs_done:
  %no_names = icmp eq ptr %names, null
  br i1 %no_names, label %next_new, label %named

; results are given
named:
  %names_size_at = getelementptr i8, ptr %names, i64 {VAR_SIZE}
  %names_size = load i64, ptr %names_size_at
  %one_name = icmp eq i64 %names_size, 1
  br i1 %one_name, label %one, label %slow
one:
  %name_at = getelementptr i8, ptr %names, i64 {TUPLE_ITEMS}
  %name = load ptr, ptr %name_at
  %out_at = getelementptr i64, ptr %d, i64 8
  %out = load ptr, ptr %out_at
  %is_out = icmp eq ptr %name, %out
  br i1 %is_out, label %given, label %slow
given:
  %given_at = getelementptr ptr, ptr %args, i64 %count
  %whole = load ptr, ptr %given_at
  br i1 %is_tuple, label %given_tuple, label %given_parts
given_tuple:
  %whole_type_at = getelementptr i8, ptr %whole, i64 {OBJECT_TYPE}
  %whole_type = load ptr, ptr %whole_type_at
  %tuple_given = icmp eq ptr %whole_type, @PyTuple_Type
  br i1 %tuple_given, label %sized, label %slow
sized:
  %whole_size_at = getelementptr i8, ptr %whole, i64 {VAR_SIZE}
  %whole_size = load i64, ptr %whole_size_at
  %right_size = icmp eq i64 %whole_size, %r
  br i1 %right_size, label %items, label %slow
items:
  %items_at = getelementptr i8, ptr %whole, i64 {TUPLE_ITEMS}
  br label %given_parts
given_parts:
  %parts = phi ptr [ %given_at, %given ], [ %items_at, %items ]
  br label %next_given
next_given:
  %g = phi i64 [ 0, %given_parts ], [ %g1, %apart ]
  %more_given = icmp slt i64 %g, %r
  br i1 %more_given, label %part, label %run_given
part:
  %part_at = getelementptr ptr, ptr %parts, i64 %g
  %piece = load ptr, ptr %part_at
  %g_words = mul i64 %g, {ROW}
  %g_row = getelementptr i64, ptr %result_rows, i64 %g_words
  %piece_ok = call i1 @fits(ptr %d, ptr %g_row, ptr %piece, i32 {WRITTEN})
  br i1 %piece_ok, label %place, label %slow
place:
  %piece_data_at = getelementptr i8, ptr %piece, i64 {ARRAY_DATA}
  %start = load i64, ptr %piece_data_at
  %g_bytes_at = getelementptr i64, ptr %g_row, i64 3
  %g_bytes = load i64, ptr %g_bytes_at
  %end = add i64 %start, %g_bytes
  %output_at = getelementptr i64, ptr %outputs, i64 %g
  store i64 %start, ptr %output_at
  br label %next_other
; no result may lie over an earlier result, or a parameter that is not its own
next_other:
  %j = phi i64 [ 0, %place ], [ %j1, %other_apart ]
  %others = add i64 %p, %g
  %own_at = getelementptr i64, ptr %g_row, i64 4
  %own = load i64, ptr %own_at
  %more_others = icmp slt i64 %j, %others
  br i1 %more_others, label %other, label %apart
other:
  %is_input = icmp slt i64 %j, %p
  %among = sub i64 %j, %p
  %j_input_at = getelementptr i64, ptr %inputs, i64 %j
  %j_output_at = getelementptr i64, ptr %outputs, i64 %among
  %j_at = select i1 %is_input, ptr %j_input_at, ptr %j_output_at
  %j_start = load i64, ptr %j_at
  %j_words = mul i64 %j, {ROW}
  %j_row = getelementptr i64, ptr %rows, i64 %j_words
  %j_bytes_at = getelementptr i64, ptr %j_row, i64 3
  %j_bytes = load i64, ptr %j_bytes_at
  %j_end = add i64 %j_start, %j_bytes
  %below = icmp ule i64 %end, %j_start
  %above = icmp ule i64 %j_end, %start
  %j1 = add i64 %j, 1
  %is_own = icmp eq i64 %own, %j1
  %same_start = icmp eq i64 %j_start, %start
  %over_own = and i1 %is_own, %same_start
  %beside = or i1 %below, %above
  %clear = or i1 %beside, %over_own
  br i1 %clear, label %other_apart, label %slow
other_apart:
  br label %next_other
apart:
  %g1 = add i64 %g, 1
  br label %next_given
run_given:
  %ran_given = call i1 @run_unlocked(ptr %d, ptr %inputs, ptr %outputs)
  br i1 %ran_given, label %return_given, label %not_given
return_given:
  call void @Py_IncRef(ptr %whole)
  ret ptr %whole
not_given:
  ret ptr null

; results are made
next_new:
  %n = phi i64 [ 0, %inputs_done ], [ %n1, %made ]
  %more_new = icmp slt i64 %n, %r
  br i1 %more_new, label %new, label %run_new
new:
  %n_words = mul i64 %n, {ROW}
  %n_row = getelementptr i64, ptr %result_rows, i64 %n_words
  %object = call ptr @new_array(ptr %d, ptr %n_row)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %unmake, label %made
made:
  %object_at = getelementptr ptr, ptr %objects, i64 %n
  store ptr %object, ptr %object_at
  %new_data_at = getelementptr i8, ptr %object, i64 {ARRAY_DATA}
  %new_data = load ptr, ptr %new_data_at
  %new_at = getelementptr ptr, ptr %outputs, i64 %n
  store ptr %new_data, ptr %new_at
  %n1 = add i64 %n, 1
  br label %next_new
run_new:
  %ran_new = call i1 @run_unlocked(ptr %d, ptr %inputs, ptr %outputs)
  br i1 %ran_new, label %pack, label %unmake
pack:
  br i1 %is_tuple, label %pack_tuple, label %single
single:
  %only = load ptr, ptr %objects
  ret ptr %only
pack_tuple:
  %tuple = call ptr @PyTuple_New(i64 %r)
  %tuple_failed = icmp eq ptr %tuple, null
  br i1 %tuple_failed, label %unmake, label %next_item
next_item:
  %k = phi i64 [ 0, %pack_tuple ], [ %k1, %item ]
  %more_items = icmp slt i64 %k, %r
  br i1 %more_items, label %item, label %packed
item:
  %from = getelementptr ptr, ptr %objects, i64 %k
  %moved = load ptr, ptr %from
  %tuple_items = getelementptr i8, ptr %tuple, i64 {TUPLE_ITEMS}
  %to = getelementptr ptr, ptr %tuple_items, i64 %k
  store ptr %moved, ptr %to
  %k1 = add i64 %k, 1
  br label %next_item
packed:
  ret ptr %tuple
unmake:
  %left = phi i64 [ %n, %new ], [ %r, %run_new ], [ %r, %pack_tuple ]
  br label %next_dropped
next_dropped:
  %u = phi i64 [ %left, %unmake ], [ %u1, %drop ]
  %more_dropped = icmp sgt i64 %u, 0
  br i1 %more_dropped, label %drop, label %dropped
drop:
  %u1 = sub i64 %u, 1
  %dropped_at = getelementptr ptr, ptr %objects, i64 %u1
  %gone = load ptr, ptr %dropped_at
  call void @Py_DecRef(ptr %gone)
  br label %next_dropped
dropped:
  ret ptr null

slow:
  %slow_at = getelementptr i8, ptr %self, i64 {TUPLE_ITEMS + 8}
  %function = load ptr, ptr %slow_at
  %whatever = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr %names)
  ret ptr %whatever
}}

; For the test at start: one word from the first parameter to the first result.
define void @copy_word(ptr %parameters, ptr %results, ptr %arena) {{
  %from = load ptr, ptr %parameters
  %to = load ptr, ptr %results
  %word = load i64, ptr %from, align 1
  store i64 %word, ptr %to, align 1
  ret void
}}
"""
"""What knows how CPython's and NumPy's objects lie in memory."""
