"""Faults planted in kernels: what is changed in their PTX, each of which the simulator has to find."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A change of a kernel's PTX: the n-th match of a pattern is replaced."""

    kernel: str
    what: str
    pattern: str
    instead: str = ""
    number: int = 0

    def plant(self, ptx: str) -> str:
        """The PTX with the fault."""
        matches = list(re.finditer(self.pattern, ptx, re.MULTILINE))
        found = matches[self.number]
        return ptx[: found.start()] + found.expand(self.instead) + ptx[found.end() :]


_POLL = r"\tmbarrier\.try_wait\.parity\.shared\.b64 (%p\d+), .*\n"
_HERE = r"\tsetp.eq.b32 \1, 0, 0;\n"
"""In place of a poll: a predicate that holds at once."""
_MEET = r"\tbar\.sync \t1, 128;\n"
_BLOCK = r"\tbar\.sync \t0;\n"
_FENCE = r"\tfence\.proxy\.async.*\n"
_PRODUCTS = r"\twgmma\.wait_group.*\n"
_WAITS = r"\tcp\.async\.bulk\.wait_group \t?0.*\n"
_CLUSTER = r"\tbarrier\.cluster\.wait.*\n"
_READS = r"\tcp\.async\.bulk\.wait_group\.read.*\n"
_POLL_IN_CLUSTER = r"\{ \.reg \.pred p; again.*\}"
_BEFORE = r"\ttcgen05\.fence::before.*\n"
_AFTER = r"\ttcgen05\.fence::after.*\n"

FAULTS = (
    Fault("add", "a copy is not waited for", _POLL, _HERE),
    Fault("add", "stores are not fenced before a copy", _FENCE),
    Fault(
        "add", "a copy goes before all have stored", rf"(fence\.proxy.*\n.*\n)(?:{_MEET})+", r"\1"
    ),
    Fault("add", "the kernel expects too many bytes", r"16384(;\n\tmbarrier\.arrive)", r"16392\1"),
    Fault("add", "the kernel expects too few bytes", r"16384(;\n\tmbarrier\.arrive)", r"16368\1"),
    Fault(
        "add",
        "an arrival too many is awaited",
        r"(mov\.b32 \t%r\d+, )2(;\n\tmbarrier\.init)",
        r"\g<1>3\2",
    ),
    Fault("add", "the barrier is not made", r"\tmbarrier\.init.*\n"),
    Fault(
        "add", "a copy goes beside its buffer", r"(add\.s32 \t%r\d+, %r\d+, )16384", r"\g<1>262144"
    ),
    Fault("softmax", "a copy is not waited for", _POLL, _HERE),
    Fault("histogram", "a barrier is used that is not there yet", _BLOCK),
    Fault("column_sums", "warps do not meet after their stores", _MEET, "", 0),
    Fault("total", "warps do not meet after their stores", _MEET, "", 0),
    Fault("total", "scratch is written again before all have read", _MEET, "", 1),
    Fault("matmul", "products are not waited for", _PRODUCTS, "", 0),
    Fault("matmul", "a tile is multiplied before it is there", _POLL, _HERE),
    Fault("matmul", "stores are not fenced before a copy", _FENCE),
    Fault("transposed_matmul", "products are not waited for", _PRODUCTS, "", 0),
    Fault("transposed_matmul", "tiles are multiplied before they are there", _POLL, _HERE),
    Fault("specialised_matmul", "a tile is multiplied before it is there", _POLL, _HERE, 0),
    Fault(
        "specialised_matmul",
        "a warp group does not say that it has read",
        r"\tmbarrier\.arrive\.shared.*\n",
    ),
    Fault("flash_attention", "keys are read before they are there", _POLL, _HERE, 2),
    Fault("flash_attention", "queries are read before they are there", _POLL, _HERE, 1),
    Fault("flash_attention", "keys are copied over before they have been read", _POLL, _HERE, 0),
    Fault(
        "flash_attention",
        "a warp group does not say that it has read",
        r"\tmbarrier\.arrive\.shared.*\n",
    ),
    Fault("flash_attention", "products are not waited for", _PRODUCTS, "", 0),
    Fault(
        "cluster_sums",
        "another block is read before it is ready",
        _POLL_IN_CLUSTER,
    ),
    Fault("cluster_sums", "barriers of another block may not be there yet", _CLUSTER, "", 0),
    Fault("cluster_sums", "a block may end while another reads its sums", _CLUSTER, "", 1),
    Fault("multicast_copy", "a tile is read before all parts are there", _POLL_IN_CLUSTER),
    Fault(
        "multicast_copy", "a tile is copied over before all have read it", _POLL_IN_CLUSTER, "", 1
    ),
    Fault("multicast_copy", "a part goes to one block too few", r"15(;\n)", r"7\1"),
    Fault("multicast_matmul", "tiles are multiplied before they are there", _POLL_IN_CLUSTER),
    Fault("tensor_matmul", "sums are read before the products have ended", _POLL, _HERE, 3),
    Fault("tensor_matmul", "a factor is copied over while it is read", _POLL, _HERE, 1),
    Fault("tensor_matmul", "products begin before the factors are there", _POLL, _HERE, 0),
    Fault("tensor_matmul", "products tell no barrier", r"\ttcgen05\.commit.*\n"),
    Fault("tensor_matmul", "tensor memory is not given back", r"\ttcgen05\.dealloc.*\n"),
    Fault(
        "tensor_sums", "sums are loaded before they are stored", r"tcgen05\.wait::st[^;]*;", "", 2
    ),
    Fault("tensor_sums", "sums are used before they are loaded", r"tcgen05\.wait::ld[^;]*;", "", 2),
    Fault("tensor_sums", "sums are read before the products have ended", _POLL, _HERE, 1),
    Fault("tensor_sums", "no fence stands between stores and a product", _BEFORE, "", 0),
    Fault("tensor_sums", "no fence stands between a product and loads", _AFTER, "", 2),
    Fault("tensor_matmul", "no fence stands between the last product and loads", _AFTER, "", 5),
    Fault("specialised_matmul", "a tile is copied over before it has been read", _POLL, _HERE, 1),
    Fault("add", "a block may end before its results are read", _WAITS),
    Fault("matmul", "a block may end before its results are read", _WAITS),
    Fault("scaled_copy", "a block may end before its results are read", _WAITS),
    Fault("histogram", "counts are updated before they are zero", _POLL, _HERE, 0),
    Fault("histogram", "counts are read before all are in", _POLL, _HERE, 1),
    Fault(
        "histogram",
        "counts are not added atomically",
        r"\t(red|atom)\.shared\.add\.u32 \t(?:%r\d+, )?\[(.*)\], (%r\d+);\n",
        r"\tst.shared.b32 [\2], \3;\n",
    ),
    Fault("scaled_copy", "a buffer is copied over while it is read", _POLL, _HERE),
    Fault("scaled_copy", "a buffer is written while a copy reads it", _READS),
    Fault(
        "scaled_copy",
        "too many copies are left to read",
        _READS,
        "\tcp.async.bulk.wait_group.read 2;\n",
    ),
)
