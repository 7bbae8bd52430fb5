# ruff: noqa: E501  a kernel stands on one line
"""Planted faults of tensor memory."""

from __future__ import annotations

from ptx_fault import Fault

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
