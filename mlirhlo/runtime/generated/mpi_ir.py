"""The code by which devices of several processes meet: what `meeting_ir.py` does in one.

Processes of one machine meet in memory that they share, at the same addresses in all: a device copies its operands
there when it publishes, and what the others have folded for it out of there when it leaves.

Elsewhere MPI carries messages. A device posts receives for the parts of the others' operands that it needs, and sends
of its own, when it publishes, and waits for them when it arrives. The published pointers are then those of this
process's memory, so that the code that moves data (`lowering/cpu/collective_code.py`) is the same. What a device folds
for the others it sends when it leaves.

MPI is called at addresses, with handles in variables, which the process sets: the code may lie in a cache.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i8, i32, i64

from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.runtime.generated import meeting_ir

IS_SHARED = 0
"""The first word of the routes of a collective: whether its devices share memory."""

OPERANDS, BUFFERS = 1, 2
"""Of routes in shared memory: how many operands there are, and buffers with the results; then come the addresses there
of all buffers, their bytes (0 of what is not copied), and this device's own pointers."""
SHARED_HEAD = 3

MESSAGES, LATER, REQUESTS, OWN, SLOTS, STATUS = range(1, 7)
"""Of routes of messages: how many there are when it starts, and when it ends; the addresses of the
requests, of this device's pointers, and of the list of entries of the table that they are published in; what MPI
returned."""
HEAD = 7
FUNCTION, PEER, TAG, BYTES, BUFFER, OFFSET = range(6)
"""Of a message: `MPI_Isend` or `MPI_Irecv`; the other rank; where the bytes are, as an offset in one of this device's
buffers."""
MESSAGE = 6

VARIABLES = ("mpi_communicator", "mpi_datatype", "mpi_request_bytes", "mpi_ignore")
LOCAL = {name: f"local_{name}" for name in (words.PUBLISH, words.ARRIVE, words.LEAVE)}
"""The functions of devices that are all in this process."""
SHARED = {name: f"shared_{name}" for name in LOCAL}
"""Those of devices in memory that processes share."""
TEST = "MPI_Testall"

_SPINS = 100
"""Tests before a device sleeps after each: a rank that it waits for may need the processor."""
_SLEEP_NS = 2_000
_SET_TIMER_SLACK = 29
"""Of `prctl`: sleeps end in time, not up to 50 µs late."""


def assembly() -> str:
    """LLVM assembly of `module`."""
    return print_llvm(module())


def module() -> ModuleOp:
    """`publish`, `arrive` and `leave`, in the llvm dialect."""
    m = LlvmBuilder()
    m.external("prctl", [i32, i64], i32)
    m.external("nanosleep", [POINTER, POINTER], i32)
    m.variable("nap", array_of(2, i64), [0, _SLEEP_NS], is_constant=True)
    m.external(TEST, [i32, POINTER, POINTER, i64], i32)
    m.external("memcpy", [POINTER, POINTER, i64], POINTER)
    for names in (LOCAL, SHARED):
        m.external(names[words.PUBLISH], [POINTER, POINTER, POINTER, i64])
        for name in (words.ARRIVE, words.LEAVE):
            m.external(names[name], [POINTER, POINTER], i8)
    for name in VARIABLES:
        m.variable(name, i64, linkage="external")
    _post(m)
    _finish(m)
    _publish_shared(m)
    _leave_shared(m)
    _publish(m)
    _arrive(m)
    _leave(m)
    return m.module()


def _variable(f: LlvmFunction, name: str) -> Value:
    return f.address(f"mpi_{name}").load(i64)


def _post(m: LlvmBuilder) -> None:
    """`post(routes, messages, count)`: starts messages."""
    f = m.function("post", [POINTER, POINTER, i64])
    routes, messages, count = f.arguments
    requests, own = routes.item(POINTER, REQUESTS), routes.item(POINTER, OWN)
    size, kind, group = (_variable(f, n) for n in ("request_bytes", "datatype", "communicator"))
    with f.count(count) as k:
        message = messages.at(i64, k * MESSAGE)
        memory = own.item(POINTER, message.item(i64, BUFFER))
        where = memory.at(i8, message.item(i64, OFFSET))
        count_, peer, tag = (message.item(i64, n).to(i32) for n in (BYTES, PEER, TAG))
        function, request = message.item(POINTER, FUNCTION), requests.at(i8, k * size)
        arguments = where, count_, kind, peer, tag, group, request
        status = f.call_pointer(function, *arguments, output=i32)
        state = routes.at(i64, STATUS)
        state.store(state.load(i64) | status.to(i64))
    f.ret()


def _finish(m: LlvmBuilder) -> None:
    """`finish(context, record, count)`: waits for messages; 1 where they will not come."""
    f = m.function("finish", [POINTER, POINTER, i64], i8)
    context, record, count = f.arguments
    routes, world = record.item(POINTER, words.ROUTES), context.load(POINTER)
    with f.if_(routes.item(i64, STATUS).cmp("ne", 0)):
        f.ret(1)
    state, done = context.at(i64, words.STATE), f.stack(i32)
    state.store(record.to(i64) - context.to(i64), "seq_cst")
    requests, ignore = routes.item(POINTER, REQUESTS), _variable(f, "ignore")
    good, bad = f.label(), f.label()
    f.call("prctl", f.value(_SET_TIMER_SLACK, i32), 1)
    with f.loop(0) as loop:
        (turn,) = loop.values
        status = f.call(TEST, count.to(i32), requests, done, ignore)
        f.jump_if(status.cmp("ne", 0), bad)
        f.jump_if(done.load(i32).cmp("ne", 0), good)
        f.jump_if(world.at(i64, meeting_ir.ENDED).load(i64, "seq_cst").cmp("ne", 0), bad)
        with f.if_(turn.cmp("ugt", _SPINS)):
            f.call("nanosleep", f.address("nap"), f.null)
        loop.next(turn + 1)
    f.place(bad)
    routes.at(i64, STATUS).store(1)
    f.ret(1)
    f.place(good)
    state.store(0, "seq_cst")
    f.ret(0)


def _lists(routes: Value) -> tuple[Value, Value, Value]:
    """Of routes in shared memory: addresses there, bytes, and this device's pointers."""
    start, count = routes.at(i64, SHARED_HEAD), routes.item(i64, BUFFERS)
    return start, start.at(i64, count), start.at(i64, count * 2)


def _publish_shared(m: LlvmBuilder) -> None:
    """Copies this device's operands to where the others see them."""
    f = m.function("publish_shared", [POINTER, POINTER, POINTER, i64])
    context, record, pointers, count = f.arguments
    routes = record.item(POINTER, words.ROUTES)
    with f.if_(record.item(i64, words.COPIES).cmp("ne", 0)):
        f.call(SHARED[words.PUBLISH], *f.arguments)
        f.ret()
    shared, sizes, own = _lists(routes)
    with f.count(count) as k:
        own.at(POINTER, k).store(pointers.item(POINTER, k))
    with f.count(routes.item(i64, OPERANDS)) as k:
        f.call("memcpy", shared.item(POINTER, k), pointers.item(POINTER, k), sizes.item(i64, k))
    f.call(SHARED[words.PUBLISH], context, record, shared, count)
    f.ret()


def _leave_shared(m: LlvmBuilder) -> None:
    """Waits for the group, and copies what it has folded for this device."""
    f = m.function("leave_shared", [POINTER, POINTER], i8)
    routes = f.arguments[1].item(POINTER, words.ROUTES)
    status = f.call(SHARED[words.LEAVE], *f.arguments)
    shared, sizes, own = _lists(routes)
    operands = routes.item(i64, OPERANDS)
    with f.count(routes.item(i64, BUFFERS) - operands) as result:
        k = result + operands
        f.call("memcpy", own.item(POINTER, k), shared.item(POINTER, k), sizes.item(i64, k))
    f.ret(status)


def _unless_messages(f: LlvmFunction, name: str, shared: str) -> Value:
    """The routes; without any, and in shared memory, other functions do it all."""
    routes = f.arguments[1].item(POINTER, words.ROUTES)
    with f.if_(routes.cmp("eq", 0)):
        result = f.call(LOCAL[name], *f.arguments)
        f.ret(None if name == words.PUBLISH else result)
    with f.if_(routes.item(i64, IS_SHARED).cmp("ne", 0)):
        result = f.call(shared, *f.arguments)
        f.ret(None if name == words.PUBLISH else result)
    return routes


def _publish(m: LlvmBuilder) -> None:
    """Notes where this device's buffers are, and starts the messages."""
    f = m.function(words.PUBLISH, [POINTER, POINTER, POINTER, i64], is_public=True)
    pointers, count = f.arguments[2:]
    routes = _unless_messages(f, words.PUBLISH, "publish_shared")
    own, slots = routes.item(POINTER, OWN), routes.item(POINTER, SLOTS)
    with f.count(count) as k:
        pointer = pointers.item(POINTER, k)
        own.at(POINTER, k).store(pointer)
        slots.item(POINTER, k).store(pointer)
    f.call("post", routes, routes.at(i64, HEAD), routes.item(i64, MESSAGES))
    f.ret()


def _arrive(m: LlvmBuilder) -> None:
    """Waits for the operands of the others."""
    f = m.function(words.ARRIVE, [POINTER, POINTER], i8, is_public=True)
    routes = _unless_messages(f, words.ARRIVE, SHARED[words.ARRIVE])
    f.ret(f.call("finish", *f.arguments, routes.item(i64, MESSAGES)))


def _leave(m: LlvmBuilder) -> None:
    """Exchanges what each device has folded for all."""
    f = m.function(words.LEAVE, [POINTER, POINTER], i8, is_public=True)
    routes = _unless_messages(f, words.LEAVE, "leave_shared")
    later = routes.item(i64, LATER)
    with f.if_(later.cmp("eq", 0)):
        f.ret(0)
    first = routes.at(i64, routes.item(i64, MESSAGES) * MESSAGE + HEAD)
    f.call("post", routes, first, later)
    f.ret(f.call("finish", *f.arguments, later))
