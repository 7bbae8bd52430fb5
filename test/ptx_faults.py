# ruff: noqa: E501  a kernel stands on one line
"""Kernels with planted faults: those of ordinary accesses, barriers and collectives here, and all of them."""

from __future__ import annotations

from ptx_async_faults import (
    CLUSTERS,
    COPIES,
    MBARRIERS,
    PRODUCTS,
    PROXIES,
)
from ptx_fault import NEXT, Fault
from ptx_tensor_faults import TENSORS

OUT_OF_BOUNDS = (
    Fault("global load behind the end", "HLO0775", "ld.global.u32 %r8, [%rd3+@@];", "1024", "0"),
    Fault("global load before the start", "HLO0775", "ld.global.u32 %r8, [%rd3+@@];", "-4", "0"),
    Fault(
        "global store behind the end",
        "HLO0775",
        "@@ st.global.u32 [%rd3], %r1;",
        "add.s64 %rd3, %rd3, 1020;",
        "",
    ),
    Fault(
        "vector over the end", "HLO0775", "ld.global.v2.u32 {%r8, %r9}, [%rd1+@@];", "1024", "1016"
    ),
    Fault("null pointer", "HLO0775", "@@ ld.global.u32 %r8, [%rd3];", "mov.u64 %rd3, 0;", ""),
    Fault("generic null pointer", "HLO0775", "@@ ld.u32 %r8, [%rd3];", "mov.u64 %rd3, 0;", ""),
    Fault(
        "shared load behind the end",
        "HLO0775",
        "st.shared.u32 [%r7], %r1; bar.sync 0; ld.shared.u32 %r8, [%r7+@@];",
        "1024",
        "0",
    ),
    Fault("shared store behind the end", "HLO0775", "st.shared.u32 [%r7+@@], %r1;", "1020", "0"),
    Fault(
        "shared address as a global one",
        "HLO0775",
        "st.shared.u32 [%r7], %r1; @@",
        "cvta.shared.u64 %rd4, tile; cvta.shared.u64 %rd5, %rd4; ld.global.u32 %r8, [%rd5];",
        "",
    ),
    Fault(
        "local array index",
        "HLO0775",
        ".local .align 4 .b8 a[16]; mov.u64 %rd4, a; st.local.u32 [%rd4+@@], %r1;",
        "64",
        "12",
    ),
    Fault(
        "atomic behind the end", "HLO0775", "atom.global.add.u32 %r8, [%rd1+@@], 1;", "1024", "0"
    ),
    Fault("reduction behind the end", "HLO0775", "red.global.add.u32 [%rd1+@@], 1;", "1028", "4"),
    Fault("parameter behind the end", "HLO0775", "ld.param.u32 %r8, [x+@@];", "8", "4"),
    Fault(
        "store to a parameter",
        "HLO0775",
        "mov.u64 %rd4, x; cvta.param.u64 %rd4, %rd4; @@",
        "st.u32 [%rd4], %r1;",
        "",
    ),
    Fault(
        "only the last thread",
        "HLO0775",
        "@@ @%p1 bra L; ld.global.u32 %r8, [%rd3+772]; L:",
        "setp.gt.u32 %p1, %r1, 63;",
        "setp.gt.u32 %p1, %r1, 62;",
    ),
    Fault(
        "use after a wrong branch",
        "HLO0775",
        "L1: .branchtargets A, B; mov.u32 %r8, @@; brx.idx %r8, L1; A: B:",
        "2",
        "1",
    ),
)
MISALIGNED = (
    Fault("word at an odd address", "HLO0778", "ld.global.u32 %r8, [%rd1+@@];", "2", "4"),
    Fault("half at an odd address", "HLO0778", "ld.global.u16 %h1, [%rd1+@@];", "3", "2"),
    Fault(
        "vector at a word",
        "HLO0778",
        "ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd1+@@];",
        "8",
        "16",
    ),
    Fault(
        "shared vector at a word", "HLO0778", "st.shared.v2.u32 [tile+@@], {%r2, %r2};", "4", "8"
    ),
    Fault("atomic at a half", "HLO0778", "atom.global.add.u32 %r8, [%rd1+@@], 1;", "2", "8"),
    Fault("double at a word", "HLO0778", "ld.global.f64 %rd4, [%rd1+@@];", "4", "8"),
)
UNINITIALISED = (
    Fault(
        "shared memory is read first",
        "HLO0779",
        "@@ bar.sync 0; ld.shared.u32 %r8, [%r7];",
        "",
        "st.shared.u32 [%r7], %r1;",
    ),
    Fault(
        "half of a shared word",
        "HLO0779",
        "mov.u16 %h1, 1; st.shared.u16 [%r7], %h1; @@ ld.shared.u32 %r8, [%r7];",
        "",
        "st.shared.u16 [%r7+2], %h1;",
    ),
    Fault(
        "local memory is read first",
        "HLO0779",
        ".local .align 4 .b8 a[16]; mov.u64 %rd4, a; @@ ld.local.u32 %r8, [%rd4];",
        "",
        "st.local.u32 [%rd4], %r1;",
    ),
    Fault(
        "one thread does not write",
        "HLO0779",
        "@@ @%p1 st.shared.u32 [%r7], %r1; bar.sync 0; ld.shared.u32 %r8, [%r7];",
        "setp.ne.u32 %p1, %r1, 7;",
        "setp.ne.u32 %p1, %r1, 64;",
    ),
    Fault(
        "an element of a vector that is used",
        "HLO0779",
        "st.shared.v2.u32 [tile], {%r1, %r2}; ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [tile]; add.u32 %r12, %r8, @@;",
        "%r11",
        "%r9",
        block=1,
    ),
    Fault(
        "atomic on shared memory without a value",
        "HLO0779",
        "@@ bar.sync 0; atom.shared.add.u32 %r8, [tile], 1;",
        "",
        "st.shared.u32 [tile], 0;",
    ),
)
BESIDE = "xor.b32 %r8, %r1, 1; shl.b32 %r8, %r8, 2; add.u32 %r8, %r5, %r8;"
RACES = (
    Fault(
        "read of another warp's word",
        "HLO0776",
        f"{NEXT} st.shared.u32 [%r7], %r1; @@ ld.shared.u32 %r9, [%r8];",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "read of a neighbour's word",
        "HLO0776",
        f"{BESIDE} st.shared.u32 [%r7], %r1; @@ ld.shared.u32 %r9, [%r8];",
        "",
        "bar.warp.sync -1;",
        places=2,
    ),
    Fault(
        "write after another's read",
        "HLO0776",
        f"{NEXT} st.shared.u32 [%r7], %r1; bar.sync 0; ld.shared.u32 %r9, [%r8]; @@ st.shared.u32 [%r7], %r9;",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "two writes of one word",
        "HLO0776",
        "@@ st.shared.u32 [%r7], %r1;",
        "mov.u32 %r7, tile;",
        "",
        places=2,
    ),
    Fault(
        "write beside an atomic",
        "HLO0776",
        "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [tile], 0; @@ atom.shared.add.u32 %r8, [tile], 1;",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "the second barrier of a loop is missing",
        "HLO0776",
        f"{NEXT} mov.u32 %r10, 0; L: st.shared.u32 [%r7], %r10; bar.sync 0; ld.shared.u32 %r9, [%r8]; @@ add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra L;",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "a barrier for half of the block",
        "HLO0776",
        f"{NEXT} st.shared.u32 [%r7], %r1; @@ ld.shared.u32 %r9, [%r8];",
        "setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 32;",
        "bar.sync 1, 64;",
        places=2,
    ),
    Fault(
        "bytes of one word",
        "HLO0776",
        "cvt.u16.u32 %h1, %r1; shr.u32 %r9, %r1, @@; add.u32 %r9, %r5, %r9; st.shared.u8 [%r9], %h1;",
        "1",
        "0",
        places=2,
    ),
    Fault(
        "blocks write one word",
        "HLO0777",
        "@@ st.global.u32 [%rd3], %r2;",
        "mov.u64 %rd3, %rd1;",
        "",
        grid=2,
        places=2,
    ),
    Fault(
        "a block reads what another writes",
        "HLO0777",
        "st.global.u32 [%rd3], %r1; bar.sync 0; @@ ld.global.u32 %r8, [%rd3];",
        "sub.s32 %r9, 127, %r4; mad.wide.u32 %rd3, %r9, 4, %rd1;",
        "",
        grid=2,
        places=2,
    ),
    Fault(
        "a thread reads its neighbour's word",
        "HLO0777",
        "st.global.u32 [%rd3], %r1; @@ xor.b32 %r9, %r4, 63; mad.wide.u32 %rd3, %r9, 4, %rd1; ld.global.u32 %r8, [%rd3];",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "plain sum into one word",
        "HLO0777",
        "@@",
        "ld.global.u32 %r8, [%rd1]; add.u32 %r8, %r8, %r1; st.global.u32 [%rd1], %r8;",
        "red.global.add.u32 [%rd1], %r1;",
        places=2,
    ),
    Fault(
        "a plain flag",
        "HLO0777",
        "setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 64; @%p1 st.global.u32 [%rd1+4], 7; @@",
        "@%p1 st.global.u32 [%rd1], 1; @%p2 ld.global.u32 %r8, [%rd1];",
        "@%p1 st.release.gpu.global.u32 [%rd1], 1; @%p2 ld.acquire.gpu.global.u32 %r8, [%rd1];",
        grid=2,
        places=2,
    ),
    Fault(
        "the last block without a fence",
        "HLO0777",
        """
st.global.u32 [%rd3+16], %r1; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E; @@
atom.global.add.u32 %r8, [%rd1], 1; setp.ne.u32 %p2, %r8, 1; @%p2 bra E; membar.gl; ld.global.u32 %r9, [%rd1+16]; ld.global.u32 %r9, [%rd1+272]; E:""",
        "",
        "membar.gl;",
        grid=2,
        places=2,
    ),
)
ARRIVALS = (
    Fault(
        "a warp that only arrives reads what others wrote before they waited",
        "HLO0776",
        f"{NEXT} setp.lt.u32 %p1, %r1, 32; @%p1 @@ 1, 64; @!%p1 st.shared.u32 [%r7], %r1; @!%p1 bar.sync 1, 64; @%p1 ld.shared.u32 %r9, [%r8];",
        "bar.arrive",
        "bar.sync",
        places=2,
    ),
    Fault(
        "a warp writes after it has arrived",
        "HLO0776",
        f"{NEXT} setp.lt.u32 %p1, %r1, 32; @@ @!%p1 bar.sync 1, 64; @!%p1 ld.shared.u32 %r9, [%r8];",
        "@%p1 bar.arrive 1, 64; @%p1 st.shared.u32 [%r7], %r1;",
        "@%p1 st.shared.u32 [%r7], %r1; @%p1 bar.arrive 1, 64;",
        places=2,
    ),
    Fault(
        "the last block with a fence of its own block",
        "HLO0777",
        """
st.global.u32 [%rd3+16], %r1; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E; membar.@@;
atom.global.add.u32 %r8, [%rd1], 1; setp.ne.u32 %p2, %r8, 1; @%p2 bra E; membar.gl; ld.global.u32 %r9, [%rd1+16]; ld.global.u32 %r9, [%rd1+272]; E:""",
        "cta",
        "gl",
        grid=2,
        places=2,
    ),
    Fault(
        "a relaxed flag",
        "HLO0777",
        "setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 64; @%p1 st.global.u32 [%rd1+4], 7; @%p1 st.@@.gpu.global.u32 [%rd1], 1; @!%p2 bra E; L: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.eq.u32 %p3, %r8, 0; @%p3 bra L; ld.global.u32 %r9, [%rd1+4]; E:",
        "relaxed",
        "release",
        grid=2,
        places=2,
    ),
)
BARRIERS = (
    Fault(
        "a barrier in a branch of a warp",
        "HLO0780",
        "setp.lt.u32 %p1, %r1, 16; @@",
        "@%p1 bar.sync 0; @!%p1 bar.sync 0;",
        "bar.sync 0;",
    ),
    Fault(
        "threads end before the barrier",
        "HLO0780",
        "@@ bar.sync 0;",
        "setp.gt.u32 %p1, %r1, 40; @%p1 exit;",
        "",
    ),
    Fault(
        "a warp ends before the barrier",
        "HLO0780",
        "@@ bar.sync 0;",
        "setp.ge.u32 %p1, %r1, 32; @%p1 exit;",
        "",
    ),
    Fault("a count that is no multiple of 32", "HLO0780", "bar.sync 1, @@;", "48", "64"),
    Fault(
        "two counts for one barrier",
        "HLO0780",
        "setp.lt.u32 %p1, %r1, 32; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, @@;",
        "96",
        "64",
    ),
    Fault("barrier 16", "HLO0780", "bar.sync @@;", "16", "15"),
)
DEADLOCKS = (
    Fault(
        "two barriers in two branches",
        "HLO0781",
        "setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync @@, 64;",
        "2",
        "1",
    ),
    Fault("a count beyond the block", "HLO0781", "bar.sync 1, @@;", "96", "64"),
    Fault(
        "a flag that nobody sets",
        "HLO0781",
        "@@ L: ld.volatile.global.u32 %r8, [%rd1]; setp.eq.u32 %p1, %r8, 0; @%p1 bra L;",
        "",
        "st.volatile.global.u32 [%rd1], 1;",
    ),
    Fault(
        "a lock that is never released",
        "HLO0781",
        "setp.eq.u32 %p2, %r1, 0; @!%p2 bra E; L: atom.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p1, %r8, 0; @%p1 bra L; @@ M: atom.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p1, %r8, 0; @%p1 bra M; E:",
        "",
        "atom.global.exch.b32 %r8, [%rd1], 0;",
    ),
)
COLLECTIVES = (
    Fault(
        "a mask without the thread",
        "HLO0784",
        "shfl.sync.idx.b32 %r8, %r1, 0, 31, @@;",
        "0x7fffffff",
        "-1",
    ),
    Fault(
        "a shuffle from a lane in another branch",
        "HLO0784",
        "setp.lt.u32 %p1, %r1, 16; and.b32 %r9, %r1, 31; setp.lt.u32 %p1, %r9, 16; @!%p1 bra E; shfl.sync.idx.b32 %r8, %r1, @@, 31, 0xffff; E:",
        "20",
        "3",
    ),
    Fault(
        "a vote without the thread",
        "HLO0784",
        "vote.sync.ballot.b32 %r8, %p1, @@;",
        "0xfffffffe",
        "-1",
    ),
)

FAULTS = (
    *(
        *OUT_OF_BOUNDS,
        *MISALIGNED,
        *UNINITIALISED,
        *RACES,
        *ARRIVALS,
        *BARRIERS,
        *DEADLOCKS,
        *COLLECTIVES,
    ),
    *(*COPIES, *PROXIES, *MBARRIERS, *PRODUCTS, *TENSORS, *CLUSTERS),
)
