"""The code between Python and a compiled module: a fast call.

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

from xdsl.dialects.builtin import ModuleOp, i1, i8, i32, i64
from xdsl.ir import Block

from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.runtime.call_layout import (
    ARRAY_DATA,
    ARRAY_DIMS,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_STRIDES,
    ARRAY_TYPE,
    BYTES,
    BYTES_DATA,
    C_ORDER,
    DIMS_OFFSET,
    DONE,
    DTYPE,
    HANDLER,
    HEAD,
    IS_LONG,
    IS_TUPLE,
    LARGE,
    OBJECT_TYPE,
    OUT,
    OWN,
    PARAMETERS,
    RANK,
    READ,
    RESULTS,
    ROW,
    STOPPED,
    STRIDES_OFFSET,
    TUPLE_ITEMS,
    VAR_SIZE,
    WRITTEN,
)


def assembly() -> str:
    """LLVM assembly of `module`."""
    return print_llvm(module())


def module() -> ModuleOp:
    """What knows how CPython's and NumPy's objects lie in memory, in the llvm dialect."""
    m = LlvmBuilder()
    _declare(m)
    _add_fits(m)
    _add_drop(m)
    _add_new_array(m)
    _add_pack(m)
    _add_run_unlocked(m)
    _add_call(m)
    _add_copy_word(m)
    return m.module()


def _declare(m: LlvmBuilder) -> None:
    m.external("run", [POINTER] * 3, i32)
    m.external("numpy_new", [*[POINTER] * 2, i32, *[POINTER] * 3, i32, POINTER], POINTER)
    m.external("numpy_set_handler", [POINTER], POINTER)
    m.external("Py_IncRef", [POINTER])
    m.external("Py_DecRef", [POINTER])
    m.external("PyTuple_New", [i64], POINTER)
    m.external("PyErr_NoMemory", [], POINTER)
    m.external("PyErr_CheckSignals", [], i32)
    m.external("PyErr_SetNone", [POINTER])
    m.external_variable("PyExc_KeyboardInterrupt", POINTER)
    m.external("PyEval_SaveThread", [], POINTER)
    m.external("PyEval_RestoreThread", [POINTER])
    m.external("PyObject_Vectorcall", [POINTER, POINTER, i64, POINTER], POINTER)
    m.external_variable("PyTuple_Type")


def _word(words: Value, index: int) -> Value:
    return words.item(i64, index)


def _rows(d: Value, first: Value | int = 0) -> Value:
    """The rows of a descriptor from a number on."""
    rows = d.at(i64, HEAD)
    return rows if isinstance(first, int) else _row(rows, first)


def _row(rows: Value, index: Value) -> Value:
    return rows.at(i64, index * ROW)


def _add_fits(m: LlvmBuilder) -> None:
    """`fits(d, row, object, flags)`: whether an object is an array that can be taken as it is."""
    f = m.function("fits", [*[POINTER] * 3, i32], i1)
    d, row, array, flags = f.arguments
    no = f.label()
    f.jump_unless(array.field(POINTER, OBJECT_TYPE).cmp("eq", d.item(POINTER, ARRAY_TYPE)), no)
    same_type = array.field(POINTER, ARRAY_DTYPE).cmp("eq", row.item(POINTER, DTYPE))
    rank = array.field(i32, ARRAY_RANK).to(i64, signed=True)
    same_rank = rank.cmp("eq", _word(row, RANK))
    is_c = _word(row, STRIDES_OFFSET).cmp("eq", 0)
    needed = is_c.select(flags, flags & ~C_ORDER)
    good_flags = (array.field(i32, ARRAY_FLAGS) & needed).cmp("eq", needed)
    f.jump_unless(same_type & same_rank & good_flags, no)
    _check_sizes(f, d, row, array, rank, no)
    f.ret(1)
    f.place(no)
    f.ret(0)


def _check_sizes(
    f: LlvmFunction, d: Value, row: Value, array: Value, rank: Value, no: Block
) -> None:
    """Jumps where an array has not the sizes, or where they matter the strides, of a row."""
    strides_offset = _word(row, STRIDES_OFFSET)
    dims, needed_dims = array.field(POINTER, ARRAY_DIMS), d.at(i8, _word(row, DIMS_OFFSET))
    strides, needed_strides = array.field(POINTER, ARRAY_STRIDES), d.at(i8, strides_offset)
    is_c = strides_offset.cmp("eq", 0)
    with f.count(rank) as k:
        size, fits = dims.item(i64, k), f.label()
        f.jump_unless(size.cmp("eq", needed_dims.item(i64, k)), no)
        # Strides of one element say nothing.
        f.jump_if(is_c | size.cmp("eq", 1), fits)
        f.jump_unless(strides.item(i64, k).cmp("eq", needed_strides.item(i64, k)), no)
        f.place(fits)


def _take_inputs(f: LlvmFunction, d: Value, args: Value, inputs: Value, slow: Block) -> None:
    """Stores the addresses of all arguments; jumps where one does not fit."""
    rows = _rows(d)
    with f.count(_word(d, PARAMETERS)) as k:
        array = args.item(POINTER, k)
        f.jump_unless(f.call("fits", d, _row(rows, k), array, READ), slow)
        inputs.at(POINTER, k).store(array.field(POINTER, ARRAY_DATA))


def _given_parts(f: LlvmFunction, d: Value, whole_at: Value, names: Value, slow: Block) -> Value:
    """Where the arrays of a keyword argument `out` are; jumps where it is another one, or no tuple of as many."""
    f.jump_unless(names.field(i64, VAR_SIZE).cmp("eq", 1), slow)
    f.jump_unless(names.field(POINTER, TUPLE_ITEMS).cmp("eq", d.item(POINTER, OUT)), slow)
    parts = f.label(POINTER)
    f.jump_if(_word(d, IS_TUPLE).cmp("eq", 0), parts, whole_at)
    whole = whole_at.load(POINTER)
    is_tuple = whole.field(POINTER, OBJECT_TYPE).cmp("eq", f.address("PyTuple_Type"))
    f.jump_unless(is_tuple, slow)
    f.jump_unless(whole.field(i64, VAR_SIZE).cmp("eq", _word(d, RESULTS)), slow)
    return f.place(parts, whole.at(i8, TUPLE_ITEMS))[0]


def _take_outputs(
    f: LlvmFunction, d: Value, parts: Value, inputs: Value, outputs: Value, slow: Block
) -> None:
    """Stores the addresses of all results that are given; jumps where one does not fit."""
    rows = _rows(d, _word(d, PARAMETERS))
    with f.count(_word(d, RESULTS)) as k:
        row, array = _row(rows, k), parts.item(POINTER, k)
        f.jump_unless(f.call("fits", d, row, array, WRITTEN), slow)
        start = array.field(i64, ARRAY_DATA)
        outputs.at(i64, k).store(start)
        _check_apart(f, d, row, inputs, outputs, k, start, slow)


def _check_apart(
    f: LlvmFunction,
    d: Value,
    row: Value,
    inputs: Value,
    outputs: Value,
    k: Value,
    start: Value,
    slow: Block,
) -> None:
    """Jumps where result k lies over an earlier result, or over a parameter that is not its own."""
    rows, count, own = _rows(d), _word(d, PARAMETERS), _word(row, OWN)
    end = start + _word(row, BYTES)
    with f.count(count + k) as j:
        is_input = j.cmp("slt", count)
        other_at = is_input.select(inputs.at(i64, j), outputs.at(i64, j - count))
        other = other_at.load(i64)
        other_end = other + _word(_row(rows, j), BYTES)
        is_beside = end.cmp("ule", other) | other_end.cmp("ule", start)
        is_own = own.cmp("eq", j + 1) & other.cmp("eq", start)
        f.jump_unless(is_beside | is_own, slow)


def _add_new_array(m: LlvmBuilder) -> None:
    """`new_array(d, row)`: an array, large ones in memory of the pool; null with an exception set."""
    f = m.function("new_array", [POINTER, POINTER], POINTER)
    d, row = f.arguments
    dtype, rank = row.item(POINTER, DTYPE), row.at(i64, RANK).load(i32)
    f.call("Py_IncRef", dtype)
    strides_offset, handler = _word(row, STRIDES_OFFSET), d.item(POINTER, HANDLER)
    strides = strides_offset.cmp("eq", 0).select(f.null, d.at(i8, strides_offset))
    dims, type_ = d.at(i8, _word(row, DIMS_OFFSET)), d.item(POINTER, ARRAY_TYPE)

    def new() -> Value:
        operands = type_, dtype, rank, dims, strides, f.null, 0, f.null
        return f.call("numpy_new", *operands)

    is_pooled = handler.cmp("ne", 0) & _word(row, BYTES).cmp("uge", LARGE)
    with f.unless(is_pooled):
        f.ret(new())
    before = f.call("numpy_set_handler", handler)
    with f.if_(before.cmp("eq", 0)):
        f.call("Py_DecRef", dtype)
        f.ret(0)
    array = new()
    ours = f.call("numpy_set_handler", before)
    f.call("Py_DecRef", before)
    with f.if_(ours.cmp("ne", 0)):
        f.call("Py_DecRef", ours)
    f.ret(array)


def _add_drop(m: LlvmBuilder) -> None:
    """`drop(objects, count)`: takes back the references to so many objects."""
    f = m.function("drop", [POINTER, i64])
    objects, count = f.arguments
    with f.count(count) as k:
        f.call("Py_DecRef", objects.item(POINTER, k))
    f.ret()


def _add_pack(m: LlvmBuilder) -> None:
    """`pack(objects, count)`: a tuple of new objects; null with an exception set."""
    f = m.function("pack", [POINTER, i64], POINTER)
    objects, count = f.arguments
    result = f.call("PyTuple_New", count)
    with f.if_(result.cmp("eq", 0)):
        f.call("drop", objects, count)
        f.ret(0)
    items = result.at(i8, TUPLE_ITEMS)
    with f.count(count) as k:
        items.at(POINTER, k).store(objects.item(POINTER, k))
    f.ret(result)


def _add_run_unlocked(m: LlvmBuilder) -> None:
    """`run_unlocked(d, parameters, results)`: `run`, while other threads of Python may run if it takes long.

    Returns false with an exception set.
    """
    f = m.function("run_unlocked", [POINTER] * 3, i1)
    operands = f.arguments

    def run_long() -> Value:
        thread = f.call("PyEval_SaveThread")
        status = f.call("run", *operands)
        f.call("PyEval_RestoreThread", thread)
        return status

    is_long = _word(operands[0], IS_LONG).cmp("ne", 0)
    status = f.either(is_long, run_long, lambda: f.call("run", *operands))
    with f.if_(status.cmp("eq", DONE)):
        f.ret(1)
    out = f.label()
    with f.unless(status.cmp("eq", STOPPED)):
        f.call("PyErr_NoMemory")
        f.jump(out)
    # Python's handler says what is raised; if that is nothing, the results are lost all the same.
    f.jump_if(f.call("PyErr_CheckSignals").cmp("ne", 0), out)
    f.call("PyErr_SetNone", f.address("PyExc_KeyboardInterrupt").load(POINTER))
    f.place(out)
    f.ret(0)


def _call_new(f: LlvmFunction, d: Value, inputs: Value, outputs: Value, objects: Value) -> None:
    """Ends a call with new results."""
    count = _word(d, RESULTS)
    rows, failed = _rows(d, _word(d, PARAMETERS)), f.label(i64)
    with f.count(count) as k:
        array = f.call("new_array", d, _row(rows, k))
        f.jump_if(array.cmp("eq", 0), failed, k)
        objects.at(POINTER, k).store(array)
        outputs.at(POINTER, k).store(array.field(POINTER, ARRAY_DATA))
    f.jump_unless(f.call("run_unlocked", d, inputs, outputs), failed, count)
    with f.if_(_word(d, IS_TUPLE).cmp("eq", 0)):
        f.ret(objects.load(POINTER))
    f.ret(f.call("pack", objects, count))
    (created,) = f.place(failed)
    f.call("drop", objects, created)
    f.ret(0)


def _add_call(m: LlvmBuilder) -> None:
    """`call(self, args, count, names)`: the function that Python calls."""
    f = m.function("call", [POINTER, POINTER, i64, POINTER], POINTER, is_public=True)
    self, args, count, names = f.arguments
    slow = f.label()
    d = self.field(POINTER, TUPLE_ITEMS).at(i8, BYTES_DATA)
    results = _word(d, RESULTS)
    f.jump_unless(count.cmp("eq", _word(d, PARAMETERS)), slow)
    inputs, outputs = f.stack_here(POINTER, count), f.stack_here(POINTER, results)
    _take_inputs(f, d, args, inputs, slow)
    with f.if_(names.cmp("eq", 0)):
        _call_new(f, d, inputs, outputs, f.stack_here(POINTER, results))
    whole_at = args.at(POINTER, count)
    parts = _given_parts(f, d, whole_at, names, slow)
    _take_outputs(f, d, parts, inputs, outputs, slow)
    failed, whole = f.label(), whole_at.load(POINTER)
    f.jump_unless(f.call("run_unlocked", d, inputs, outputs), failed)
    f.call("Py_IncRef", whole)
    f.ret(whole)
    f.place(failed)
    f.ret(0)
    f.place(slow)
    function = self.field(POINTER, TUPLE_ITEMS + 8)
    f.ret(f.call("PyObject_Vectorcall", function, args, count, names))


def _add_copy_word(m: LlvmBuilder) -> None:
    """For the test at start: one word from the first parameter to the first result."""
    f = m.function("copy_word", [POINTER] * 3, is_public=True)
    parameters, results, _ = f.arguments
    word = parameters.load(POINTER).load(i64, alignment=1)
    results.load(POINTER).store(word, alignment=1)
    f.ret()
