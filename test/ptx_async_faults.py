# ruff: noqa: E501  a kernel stands on one line
"""Planted faults of asynchronous copies, mbarriers, products, tensor memory and clusters."""

from __future__ import annotations

from ptx_fault import NEXT, Fault

FIRST = "setp.eq.u32 %p1, %r1, 0;"
INIT = f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;"
START = f"{INIT} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 256; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar];"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
STORE = f"{FIRST} @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
FILLED = "st.shared.u32 [%r7], %r1; fence.proxy.async; bar.sync 0;"
SEND = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 256; cp.async.bulk.commit_group;"
OVERWRITTEN = (
    Fault(
        "a thread writes what a bulk copy may still read",
        "HLO0776",
        f"{FIRST} {FILLED} {SEND} @@ bar.sync 0; st.shared.u32 [%r7], 7;",
        "",
        "cp.async.bulk.wait_group.read 0;",
        places=2,
    ),
    Fault(
        "the thread of a bulk copy writes what it may still read",
        "HLO0776",
        f"{FIRST} {FILLED} {SEND} @@ @%p1 st.shared.u32 [tile], 7;",
        "",
        "cp.async.bulk.wait_group.read 0;",
        places=2,
    ),
    Fault(
        "a wait leaves the bulk copy whose source is written",
        "HLO0776",
        f"{FIRST} {FILLED} {SEND} cp.async.bulk.wait_group.read @@; bar.sync 0; st.shared.u32 [%r7], 7;",
        "1",
        "0",
        places=2,
    ),
    Fault(
        "a bulk copy goes to what another may still read",
        "HLO0776",
        f"{INIT} {FILLED} {SEND} @@ @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 256; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar]; cp.async.bulk.wait_group 0; {WAIT}",
        "",
        "cp.async.bulk.wait_group 0;",
        places=2,
    ),
    Fault(
        "atomic updates of what a bulk copy may still read",
        "HLO0776",
        f"{FIRST} {FILLED} {SEND} @@ bar.sync 0; red.shared.add.u32 [%r7], 1;",
        "",
        "cp.async.bulk.wait_group.read 0;",
        places=2,
    ),
    Fault(
        "a thread writes global memory that a bulk copy may still read",
        "HLO0777",
        f"{START} @@ st.global.u32 [%rd3], 7; {WAIT}",
        "",
        WAIT.replace("W", "V") + " bar.sync 0;",
        places=2,
    ),
)
LOAD_BULK = "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 256; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar];"
UNDER_WAY = (
    Fault(
        "a copy over old values is not waited for",
        "HLO0776",
        "st.shared.u32 [%r7], %r1; cp.async.ca.shared.global [%r7], [%rd3], 4; cp.async.commit_group; @@ ld.shared.u32 %r8, [%r7];",
        "",
        "cp.async.wait_group 0;",
        places=2,
    ),
    Fault(
        "a copy over a word that was read, and a barrier after it",
        "HLO0776",
        f"{NEXT} st.shared.u32 [%r7], %r1; bar.sync 0; ld.shared.u32 %r9, [%r8]; @@ cp.async.ca.shared.global [%r7], [%rd3], 4; bar.sync 0; cp.async.wait_all;",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "a bulk copy over old values is not waited for",
        "HLO0776",
        f"{INIT} {FILLED} {LOAD_BULK} @@ ld.shared.u32 %r8, [%r7]; {WAIT}",
        "",
        WAIT.replace("W", "V"),
        places=2,
    ),
    Fault(
        "a bulk copy over what others read, and a barrier after it",
        "HLO0776",
        f"{INIT} {FILLED} ld.shared.u32 %r8, [%r7]; @@ {LOAD_BULK} bar.sync 0; {WAIT}",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "global memory is read when a bulk copy has only read its source",
        "HLO0777",
        f"{FIRST} {FILLED} {SEND} cp.async.bulk.wait_group@@ 0; bar.sync 0; ld.global.u32 %r8, [%rd3];",
        ".read",
        "",
        places=2,
    ),
    Fault(
        "the thread of a bulk copy that has only read its source reads the result",
        "HLO0777",
        f"{FIRST} {FILLED} {SEND} cp.async.bulk.wait_group@@ 0; @%p1 ld.global.u32 %r8, [%rd1];",
        ".read",
        "",
        places=2,
    ),
    Fault(
        "a flag is set when a bulk copy has only read its source",
        "HLO0777",
        f"setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r4, 64; {FILLED} @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+256], [tile], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group@@ 0; fence.proxy.async; @%p1 st.release.gpu.global.u32 [%rd1], 1; @!%p2 bra E; L: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.eq.u32 %p3, %r8, 0; @%p3 bra L; ld.global.u32 %r9, [%rd1+256]; E:",
        ".read",
        "",
        grid=2,
        places=2,
    ),
    Fault(
        "a bulk copy reads what another has not written yet",
        "HLO0777",
        f"{FIRST} {INIT} {FILLED} {SEND} cp.async.bulk.wait_group@@ 0; {LOAD_BULK} {WAIT}",
        ".read",
        "",
        places=2,
    ),
    Fault(
        "global memory that a bulk reduction may still update is read",
        "HLO0777",
        f"{FIRST} {FILLED} @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group@@ 0; bar.sync 0; ld.global.u32 %r8, [%rd3];",
        ".read",
        "",
        places=2,
    ),
    Fault(
        "the block ends while a bulk copy may still read its memory",
        "HLO0775",
        f"{FIRST} {FILLED} {SEND} @@",
        "",
        "cp.async.bulk.wait_group.read 0;",
    ),
    Fault(
        "the block ends while a bulk copy may still write its memory",
        "HLO0775",
        f"{INIT} {LOAD_BULK} @@",
        "",
        WAIT,
    ),
)
COPIES = (
    *OVERWRITTEN,
    *UNDER_WAY,
    Fault(
        "a copy is not waited for",
        "HLO0779",
        "cp.async.ca.shared.global [%r7], [%rd3], 4; cp.async.commit_group; @@ ld.shared.u32 %r8, [%r7];",
        "",
        "cp.async.wait_group 0;",
    ),
    Fault(
        "a group too few is waited for",
        "HLO0779",
        "cp.async.ca.shared.global [%r7], [%rd3], 4; cp.async.commit_group; cp.async.wait_group @@; ld.shared.u32 %r8, [%r7];",
        "1",
        "0",
    ),
    Fault(
        "a copy that is not committed",
        "HLO0779",
        "cp.async.ca.shared.global [%r7], [%rd3], 4; @@ cp.async.wait_group 0; ld.shared.u32 %r8, [%r7];",
        "",
        "cp.async.commit_group;",
    ),
    Fault(
        "a copy of another warp without a barrier",
        "HLO0776",
        f"{NEXT} cp.async.ca.shared.global [%r7], [%rd3], 4; cp.async.wait_all; @@ ld.shared.u32 %r9, [%r8];",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "a copy over a word that is still read",
        "HLO0776",
        f"{NEXT} st.shared.u32 [%r7], %r1; bar.sync 0; ld.shared.u32 %r9, [%r8]; @@ cp.async.ca.shared.global [%r7], [%rd3], 4; cp.async.wait_all;",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "a copy behind the end",
        "HLO0775",
        "cp.async.cg.shared.global [tile], [%rd1+@@], 16;",
        "1024",
        "1008",
        block=1,
    ),
    Fault(
        "a bulk copy is not waited for",
        "HLO0779",
        f"{START} @@ ld.shared.u32 %r8, [%r7];",
        "",
        WAIT,
    ),
    Fault(
        "a bulk copy behind the end",
        "HLO0775",
        f"{FIRST} mov.u32 %r8, @@; @%p1 st.shared.u32 [tile], 0; {INIT} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], %r8; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1+512], %r8, [bar]; {WAIT}",
        "528",
        "512",
    ),
    Fault(
        "a bulk copy of 24 bytes",
        "HLO0785",
        f"{INIT} mov.u32 %r8, @@; @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], %r8; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], %r8, [bar]; {WAIT}",
        "24",
        "32",
    ),
    Fault(
        "a bulk copy to a word",
        "HLO0785",
        f"{INIT} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 32; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+@@], [%rd1], 32, [bar]; {WAIT}",
        "8",
        "16",
    ),
    Fault(
        "a tensor map that is none",
        "HLO0785",
        f"{INIT} @@",
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 32; mov.u32 %r8, 0; @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {%r8}], [bar];",
        "",
    ),
)
PROXIES = (
    Fault(
        "a bulk copy of what threads wrote",
        "HLO0782",
        f"st.shared.u32 [%r7], %r1; @@ bar.sync 0; {STORE}",
        "",
        "fence.proxy.async.shared::cta;",
        places=2,
    ),
    Fault(
        "a bulk copy of global memory that threads wrote",
        "HLO0782",
        f"st.global.u32 [%rd3], %r1; @@ bar.sync 0; {START} {WAIT}",
        "",
        "fence.proxy.async;",
        places=2,
    ),
    Fault(
        "a proxy fence for the other memory",
        "HLO0782",
        f"st.global.u32 [%rd3], %r1; fence.proxy.async.@@; bar.sync 0; {START} {WAIT}",
        "shared::cta",
        "global",
        places=2,
    ),
    Fault(
        "a proxy fence before the write",
        "HLO0782",
        f"@@ bar.sync 0; {STORE}",
        "fence.proxy.async; st.shared.u32 [%r7], %r1;",
        "st.shared.u32 [%r7], %r1; fence.proxy.async;",
        places=2,
    ),
    Fault(
        "a proxy fence of a thread that has not seen the writes",
        "HLO0782",
        f"st.shared.u32 [%r7], %r1; @@ {STORE}",
        f"{FIRST} @%p1 fence.proxy.async; bar.sync 0;",
        f"bar.sync 0; {FIRST} @%p1 fence.proxy.async;",
        places=2,
    ),
)
MBARRIERS = (
    Fault(
        "an object without a value",
        "HLO0783",
        f"{FIRST} @@ bar.sync 0; mbarrier.arrive.shared.b64 %rd10, [bar];",
        "",
        "@%p1 mbarrier.init.shared.b64 [bar], 64;",
    ),
    Fault(
        "an object that is initialised twice",
        "HLO0783",
        f"{INIT} @@",
        "@%p1 mbarrier.init.shared.b64 [bar], 1;",
        "",
    ),
    Fault(
        "more arrivals than it counts",
        "HLO0783",
        f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], @@; bar.sync 0; @%p1 mbarrier.arrive.shared.b64 %rd10, [bar], 2;",
        "1",
        "2",
    ),
    Fault("a count of 0", "HLO0783", f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], @@;", "0", "1"),
    Fault(
        "a parity of 2",
        "HLO0783",
        f"{INIT} mbarrier.test_wait.parity.shared.b64 %p2, [bar], @@;",
        "2",
        "1",
    ),
    Fault(
        "an object that is gone",
        "HLO0783",
        f"{INIT} @@ @%p1 mbarrier.arrive.shared.b64 %rd10, [bar];",
        "@%p1 mbarrier.inval.shared.b64 [bar];",
        "",
    ),
    Fault(
        "an object that others may not see yet",
        "HLO0776",
        f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], 64; @@ mbarrier.arrive.shared.b64 %rd10, [bar];",
        "",
        "bar.sync 0;",
        places=2,
    ),
    Fault(
        "an arrival too few",
        "HLO0781",
        f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], @@; bar.sync 0; mbarrier.arrive.shared.b64 %rd10, [bar]; {WAIT}",
        "65",
        "64",
    ),
    Fault(
        "bytes that never come",
        "HLO0781",
        f"{INIT} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], @@; @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [bar]; {WAIT}",
        "512",
        "256",
    ),
    Fault(
        "a second phase that nobody completes",
        "HLO0781",
        f"{INIT} @%p1 mbarrier.arrive.shared.b64 %rd10, [bar]; {WAIT} V: mbarrier.try_wait.parity.shared.b64 %p2, [bar], @@; @!%p2 bra V;",
        "1",
        "0",
    ),
)
ZEROS = "st.shared.u32 [%r7], 0; fence.proxy.async; bar.sync 0; mov.b64 %rd10, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r8, %r9, %r10, %r11}, %rd10, 0, 1, 1, 0; wgmma.commit_group.sync.aligned;"
"""A product of zeros at the start of shared memory."""
PRODUCTS = (
    Fault(
        "an operand is overwritten while a product may still read it",
        "HLO0776",
        f"{ZEROS} wgmma.wait_group.sync.aligned @@; bar.sync 0; st.shared.u32 [%r7], 7; wgmma.wait_group.sync.aligned 0;",
        "1",
        "0",
        block=128,
        places=2,
    ),
    Fault(
        "a bulk copy goes to what a product may still read",
        "HLO0776",
        f"{INIT} {ZEROS} wgmma.wait_group.sync.aligned @@; bar.sync 0; {LOAD_BULK} {WAIT} wgmma.wait_group.sync.aligned 0;",
        "1",
        "0",
        block=128,
        places=2,
    ),
    Fault(
        "operands are released before their product has been waited for",
        "HLO0776",
        f"{FIRST} @%p1 mbarrier.init.shared.b64 [bar], 128; bar.sync 0; setp.lt.u32 %p3, %r1, 128; @!%p3 bra L; {ZEROS.replace('bar.sync 0', 'bar.sync 1, 128')} @@ bra E; L: {WAIT} setp.eq.u32 %p4, %r1, 128; @%p4 st.shared.u32 [tile], 7; E:",
        "mbarrier.arrive.shared.b64 %rd11, [bar]; wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 0; mbarrier.arrive.shared.b64 %rd11, [bar];",
        block=160,
        places=2,
    ),
    Fault(
        "a product without a fence",
        "HLO0786",
        "st.shared.u32 [%r7], 0; bar.sync 0; fence.proxy.async; bar.sync 0; mov.b64 %rd10, 0; @@ wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r8, %r9, %r10, %r11}, %rd10, 0, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        "",
        "wgmma.fence.sync.aligned;",
        block=128,
    ),
    Fault(
        "an accumulator that is read too early",
        "HLO0786",
        "st.shared.u32 [%r7], 0; bar.sync 0; fence.proxy.async; bar.sync 0; mov.b64 %rd10, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r8, %r9, %r10, %r11}, %rd10, 0, 1, 1, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned @@; add.f32 %f5, %f1, %f2; wgmma.wait_group.sync.aligned 0;",
        "1",
        "0",
        block=128,
    ),
    *(
        Fault(
            f"{name} with no fence after it",
            "HLO0786",
            f"{ZEROS} wgmma.wait_group.sync.aligned 0; {access} @@ {ZEROS.partition('aligned; ')[2].replace('m64n8k16', shape)} wgmma.wait_group.sync.aligned 0;",
            "",
            "wgmma.fence.sync.aligned;",
            block=128,
            places=2,
        )
        for name, access, shape in (
            ("an accumulator is written,", "mov.f32 %f2, 0f00000000;", "m64n8k16"),
            ("an accumulator is read,", "add.f32 %f5, %f2, 0f3f800000;", "m64n8k16"),
            ("a fragment of a factor is written,", "add.u32 %r9, %r1, 1;", "m64n8k16"),
            ("a fragment of a factor is read,", "add.u32 %r12, %r9, 1;", "m64n8k16"),
            (
                "some threads write an accumulator,",
                "setp.gt.u32 %p1, %r1, 99; @%p1 mov.f32 %f3, 0f00000000;",
                "m64n8k16",
            ),
        )
    ),
    Fault(
        "products of two shapes into one accumulator without a fence",
        "HLO0786",
        f"{ZEROS.replace('.m64n8k16', '.m64n16k16').replace('%f4}', '%f4, %f5, %f6, %f7, %f0}')} @@ {ZEROS.partition('aligned; ')[2]} wgmma.wait_group.sync.aligned 0;",
        "",
        "wgmma.fence.sync.aligned;",
        block=128,
        places=2,
    ),
    Fault(
        "a fragment of a factor is written while its product may still read it",
        "HLO0786",
        f"{ZEROS} wgmma.wait_group.sync.aligned @@; mov.u32 %r9, %r1; wgmma.wait_group.sync.aligned 0;",
        "1",
        "0",
        block=128,
    ),
    Fault(
        "half of a warp group",
        "HLO0786",
        "st.shared.u32 [%r7], 0; bar.sync 0; fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned; setp.lt.u32 %p1, %r1, @@; @!%p1 bra E; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r8, %r9, %r10, %r11}, %rd10, 0, 1, 1, 0; E:",
        "64",
        "128",
        block=128,
    ),
)
TENSOR_MEMORY = ".shared .align 4 .b32 at; setp.lt.u32 %p7, %r1, 32; @%p7 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; bar.sync 0; ld.shared.u32 %r15, [at]; shr.u32 %r16, %r1, 5; shl.b32 %r16, %r16, 21; add.u32 %r16, %r16, %r15;"
"""Allocates 32 columns: %r15, and %r16 for the lanes of the warp."""
FREE = "bar.sync 0; @%p7 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r15, 32;"
PRODUCT = "setp.eq.u32 %p6, %r1, 0; @%p6 mbarrier.init.shared.b64 [bar], 1; st.shared.u32 [%r7], 0; fence.proxy.async; bar.sync 0; cvt.u64.u32 %rd10, %r5; shr.u64 %rd10, %rd10, 4; or.b64 %rd10, %rd10, 0x400000080000; mov.u32 %r17, 0x04020010; setp.ne.u32 %p5, %r1, %r1; @%p6 tcgen05.mma.cta_group::1.kind::f16 [%r15], %rd10, %rd10, %r17, %p5;"
"""A product of 64 rows and 8 columns of zeros."""
COMMIT = "@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
AWAIT = "W: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0; @!%p4 bra W; tcgen05.fence::after_thread_sync;"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
STORE = "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r16], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}; tcgen05.wait::st.sync.aligned;"
AGAIN = f"@%p6 tcgen05.mma.cta_group::1.kind::f16 [%r15], %rd10, %rd10, %r17, %p5; {COMMIT} V: mbarrier.try_wait.parity.shared.b64 %p4, [bar], 1; @!%p4 bra V;"
"""The product once more, over its own sums."""
SHARED_CELLS = f"and.b32 %r17, %r1, 96; shl.b32 %r17, %r17, 16; add.u32 %r17, %r17, %r15; setp.lt.u32 %p4, %r1, 128; @%p4 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r17], {{%r1}}; tcgen05.wait::st.sync.aligned; {BEFORE} bar.sync 0; {AFTER} @!%p4 tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%r17]; tcgen05.wait::ld.sync.aligned;"
"""A warp group stores what another loads."""
LOAD = "tcgen05.ld.sync.aligned.16x64b.x4.b32 {%r8, %r9, %r10, %r11}, [%r16]; tcgen05.wait::ld.sync.aligned;"
TENSORS = (
    Fault(
        "tensor memory read without wait::ld",
        "HLO0796",
        f"{TENSOR_MEMORY} tcgen05.st.sync.aligned.32x32b.x1.b32 [%r16], {{%r1}}; tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%r16]; @@ add.u32 %r9, %r8, 1; tcgen05.wait::ld.sync.aligned; {FREE}",
        "",
        "tcgen05.wait::ld.sync.aligned;",
        block=128,
    ),
    Fault(
        "tensor memory read without wait::st",
        "HLO0796",
        f"{TENSOR_MEMORY} tcgen05.st.sync.aligned.32x32b.x1.b32 [%r16], {{%r1}}; @@ tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%r16]; tcgen05.wait::ld.sync.aligned; {FREE}",
        "",
        "tcgen05.wait::st.sync.aligned;",
        block=128,
    ),
    Fault("tensor memory that is not freed", "HLO0796", f"{TENSOR_MEMORY} @@", "", FREE, block=128),
    Fault(
        "columns that are not allocated",
        "HLO0796",
        f"{TENSOR_MEMORY} tcgen05.st.sync.aligned.32x32b.x2.b32 [%r16+@@], {{%r1, %r1}}; tcgen05.wait::st.sync.aligned; {FREE}",
        "31",
        "30",
        block=128,
    ),
    Fault(
        "lanes of another warp",
        "HLO0796",
        f"{TENSOR_MEMORY} tcgen05.st.sync.aligned.32x32b.x1.b32 [@@], {{%r1}}; tcgen05.wait::st.sync.aligned; {FREE}",
        "%r16+2097152",
        "%r16",
        block=128,
    ),
    Fault(
        "a column that nothing has written",
        "HLO0779",
        f"{TENSOR_MEMORY} tcgen05.st.sync.aligned.32x32b.x1.b32 [%r16], {{%r1}}; tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%r16+@@]; tcgen05.wait::ld.sync.aligned; {FREE}",
        "1",
        "0",
        block=128,
    ),
    Fault(
        "a product that is not waited for",
        "HLO0796",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} @@ {LOAD} {FREE}",
        "bar.sync 0;",
        AWAIT,
        block=128,
        places=2,
    ),
    Fault(
        "a product without a commit",
        "HLO0781",
        f"{TENSOR_MEMORY} {PRODUCT} @@ {AWAIT} {LOAD} {FREE}",
        "",
        COMMIT,
        block=128,
    ),
    Fault(
        "a product's sums read without the fence after synchronisation",
        "HLO0796",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} {AWAIT.replace(AFTER, '@@')} {LOAD} {FREE}",
        "",
        AFTER,
        block=128,
        places=2,
    ),
    Fault(
        "the fence after synchronisation stands before it",
        "HLO0796",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} @@ {LOAD} {FREE}",
        f"{AFTER} {AWAIT.replace(AFTER, '')}",
        AWAIT,
        block=128,
        places=2,
    ),
    Fault(
        "a store and a product without the fence before synchronisation",
        "HLO0796",
        f"{TENSOR_MEMORY} {STORE} @@ bar.sync 0; {AFTER} {PRODUCT} {COMMIT} {AWAIT} {LOAD} {FREE}",
        "",
        BEFORE,
        block=128,
        places=2,
    ),
    Fault(
        "a store and a product without the fence after synchronisation",
        "HLO0796",
        f"{TENSOR_MEMORY} {STORE} {BEFORE} bar.sync 0; @@ {PRODUCT} {COMMIT} {AWAIT} {LOAD} {FREE}",
        "",
        AFTER,
        block=128,
        places=2,
    ),
    Fault(
        "a load and a product over it without the fence before synchronisation",
        "HLO0796",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} {AWAIT} {LOAD} @@ bar.sync 0; {AFTER} {AGAIN} {FREE}",
        "",
        BEFORE,
        block=128,
        places=2,
    ),
    *(
        Fault(
            f"a store of one warp group and a load of another without {fence}",
            "HLO0796",
            f"{TENSOR_MEMORY} {SHARED_CELLS}".replace(fence, "@@") + FREE,
            "",
            fence,
            block=256,
            places=2,
        )
        for fence in (BEFORE, AFTER)
    ),
    Fault(
        "an operand overwritten under a product",
        "HLO0776",
        f"{TENSOR_MEMORY} {PRODUCT} @%p6 st.shared.u32 [%r7+@@], 0x3c003c00; {COMMIT} {AWAIT} {LOAD} {FREE}",
        "0",
        "512",
        block=128,
        places=2,
    ),
    Fault(
        "a product of what no fence has passed on",
        "HLO0782",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} {AWAIT} {LOAD} {FREE}".replace(
            "fence.proxy.async;", "@@"
        ),
        "",
        "fence.proxy.async;",
        block=128,
    ),
    Fault(
        "a sum without a first value",
        "HLO0779",
        f"{TENSOR_MEMORY} {PRODUCT} {COMMIT} {AWAIT} {LOAD} {FREE}".replace(
            "setp.ne.u32 %p5", "setp.@@.u32 %p5"
        ),
        "eq",
        "ne",
        block=128,
    ),
)
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PEER = "mov.u32 %r8, %cluster_ctarank; setp.eq.u32 %p1, %r8, 1; mapa.shared::cluster.u32 %r9, %r7, 0; mov.u32 %r12, bar; mapa.shared::cluster.u32 %r12, %r12, 0;"
"""The same word, and the mbarrier, of the first block; %p1 in the second."""
CLUSTERS = (
    Fault(
        "the last wait for the cluster is missing",
        "HLO0775",
        f"st.shared.u32 [%r7], %r1; {MEET} {PEER} @%p1 ld.shared::cluster.u32 %r10, [%r9]; barrier.cluster.arrive.aligned; @@",
        "",
        "barrier.cluster.wait.aligned;",
        grid=2,
        options={"cluster": 2},
    ),
    Fault(
        "an atomic update of a block that may have ended",
        "HLO0775",
        f"st.shared.u32 [%r7], %r1; {MEET} {PEER} @%p1 atom.shared::cluster.add.u32 %r10, [%r9], 1; @@",
        "",
        MEET,
        grid=2,
        options={"cluster": 2},
    ),
    Fault(
        "an arrival at the mbarrier of a block that may have ended",
        "HLO0775",
        f"setp.eq.u32 %p3, %r1, 0; @%p3 mbarrier.init.shared.b64 [bar], 64; {MEET} {PEER} @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12]; @@",
        "",
        MEET,
        grid=2,
        options={"cluster": 2},
    ),
    Fault(
        "another block's word after an arrival alone",
        "HLO0776",
        f"st.shared.u32 [%r7], %r1; barrier.cluster.arrive.aligned; @@ {PEER} @%p1 ld.shared::cluster.u32 %r10, [%r9]; {MEET}",
        "",
        "barrier.cluster.wait.aligned;",
        grid=2,
        options={"cluster": 2},
        places=2,
    ),
    Fault(
        "another block's word after a relaxed arrival",
        "HLO0776",
        f"st.shared.u32 [%r7], %r1; barrier.cluster.arrive@@.aligned; barrier.cluster.wait.aligned; {PEER} @%p1 ld.shared::cluster.u32 %r10, [%r9]; {MEET}",
        ".relaxed",
        "",
        grid=2,
        options={"cluster": 2},
        places=2,
    ),
    Fault(
        "a bulk copy to a block that may have ended",
        "HLO0775",
        f"setp.eq.u32 %p3, %r1, 0; @%p3 mbarrier.init.shared.b64 [bar], 1; st.shared.u32 [%r7], %r1; fence.proxy.async; {MEET} {PEER} and.pred %p4, %p1, %p3; mov.u32 %r13, 0; mapa.shared::cluster.u32 %r14, %r5, %r13; not.pred %p6, %p1; and.pred %p5, %p3, %p6; @%p5 mbarrier.arrive.expect_tx.shared.b64 %rd10, [bar], 256; @%p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r14], [tile], 256, [%r12]; @%p1 bra E; @@ E: {MEET}",
        "",
        WAIT,
        grid=2,
        options={"cluster": 2},
    ),
    Fault(
        "shared memory of a block that has ended",
        "HLO0775",
        "st.shared.u32 [%r7], %r1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r8, %cluster_ctarank; setp.eq.u32 %p1, %r8, 1; @!%p1 bra E; mov.u32 %r9, tile; mapa.shared::cluster.u32 %r9, %r9, 0; S: ld.shared::cluster.u32 %r10, [%r9]; add.u32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, 50; @%p2 bra S; E: @@",
        "",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        grid=2,
        options={"cluster": 2},
    ),
    Fault(
        "another block's word without a barrier",
        "HLO0776",
        "st.shared.u32 [%r7], %r1; @@ mov.u32 %r8, %cluster_ctarank; xor.b32 %r8, %r8, 1; mapa.shared::cluster.u32 %r9, %r7, %r8; ld.shared::cluster.u32 %r10, [%r9]; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "bar.sync 0;",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        grid=2,
        options={"cluster": 2},
        places=2,
    ),
    Fault(
        "a rank beyond the cluster",
        "HLO0775",
        "st.shared.u32 [%r7], %r1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mapa.shared::cluster.u32 %r9, %r7, @@; ld.shared::cluster.u32 %r10, [%r9]; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "2",
        "1",
        grid=2,
        options={"cluster": 2},
    ),
)
