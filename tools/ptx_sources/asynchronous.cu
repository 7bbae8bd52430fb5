// Copies, barriers and products of sm_80 and sm_90a that CUDA C++ reaches by inline PTX, and clusters.
#include <cooperative_groups.h>
#include <stdint.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
__device__ inline uint32_t address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

KERNEL staged_copy(const float4 *a, float4 *out) {
  __shared__ float4 s[2][128];
  for (int i = 0; i < 2; i++) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(&s[i][threadIdx.x])), "l"(a + i * 128 + threadIdx.x));
    asm volatile("cp.async.commit_group;");
  }
  asm volatile("cp.async.wait_group 1;");
  __syncthreads();
  out[threadIdx.x] = s[0][threadIdx.x ^ 1];
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[threadIdx.x + 128] = s[1][threadIdx.x ^ 1];
}
KERNEL zero_filled_copy(const float *a, float *out, int n) {
  __shared__ float s[128];
  int bytes = threadIdx.x < n ? 4 : 0;
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(address(s + threadIdx.x)), "l"(a + threadIdx.x), "r"(bytes));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
KERNEL matrix_loads(const uint16_t *a, uint32_t *out) {
  __shared__ __align__(16) uint16_t s[32 * 8];
  for (int i = threadIdx.x; i < 256; i += 32) s[i] = a[i];
  __syncwarp();
  uint32_t r[4], t[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(s + threadIdx.x * 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(t[0]), "=r"(t[1]) : "r"(address(s + (threadIdx.x & 15) * 8)));
  for (int i = 0; i < 4; i++) out[threadIdx.x * 6 + i] = r[i];
  out[threadIdx.x * 6 + 4] = t[0];
  out[threadIdx.x * 6 + 5] = t[1];
}
#define MMA(NAME, C, COUNT, TEXT, A, B)                                      \
  KERNEL mma_##NAME(const uint32_t *a, const uint32_t *b, C *c) {            \
    C d[4] = {c[threadIdx.x * 4], c[threadIdx.x * 4 + 1], c[threadIdx.x * 4 + 2], c[threadIdx.x * 4 + 3]}; \
    const uint32_t *x = a + threadIdx.x * 4, *y = b + threadIdx.x * 2;       \
    asm volatile(TEXT A B : "+" COUNT(d[0]), "+" COUNT(d[1]), "+" COUNT(d[2]), "+" COUNT(d[3]) \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
    for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];               \
  }
#define FULL " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#define HALF " {%0,%1,%2,%3}, {%4,%5}, {%8}, {%0,%1,%2,%3};"
MMA(f16, float, "f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", FULL, "")
MMA(f16_k8, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", HALF, "")
MMA(bf16, float, "f", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", FULL, "")
MMA(tf32, float, "f", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", FULL, "")
MMA(tf32_k4, float, "f", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", HALF, "")
MMA(s8, int, "r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", FULL, "")
MMA(u8_saturated, int, "r", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", FULL, "")
MMA(s4, int, "r", "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", FULL, "")
MMA(b1, int, "r", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", FULL, "")

#if __CUDA_ARCH__ >= 900
MMA(e4m3, float, "f", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", FULL, "")
KERNEL barrier_phases(int *a) {
  __shared__ uint64_t barrier;
  if (!threadIdx.x) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&barrier)), "r"(blockDim.x));
  __syncthreads();
  for (int phase = 0; phase < 4; phase++) {
    a[threadIdx.x] += phase;
    uint64_t state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(address(&barrier)));
    a[threadIdx.x] += state == 0;
    asm volatile("{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra.uni finished;\nbra.uni wait;\nfinished:\n}" ::"r"(address(&barrier)), "r"(phase & 1));
  }
  __syncthreads();
  if (!threadIdx.x) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address(&barrier)));
}
struct __align__(64) Map { uint64_t data[16]; };
KERNEL tensor_copy(const __grid_constant__ Map map, float *out) {
  __shared__ __align__(128) float tile[32 * 32];
  __shared__ uint64_t barrier;
  if (!threadIdx.x) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&barrier)));
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile("prefetch.tensormap [%0];" ::"l"((uint64_t)&map));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&barrier)), "r"(4096));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address(tile)), "l"((uint64_t)&map), "r"(0), "r"(32 * blockIdx.x), "r"(address(&barrier)) : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(address(&barrier)));
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] *= 2;
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (!threadIdx.x) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;" ::"l"(out + 1024 * blockIdx.x), "r"(address(tile)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"((uint64_t)&map), "r"(0), "r"(0), "r"(address(tile)));
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"((uint64_t)&map), "r"(0), "r"(0), "r"(address(tile)));
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\ncp.async.bulk.wait_group 0;");
  }
}
KERNEL __cluster_dims__(2, 1, 1) clusters(int *a) {
  __shared__ int s[64];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = a[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  a[blockIdx.x * 64 + threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.sync();
}
KERNEL stores_of_matrices(uint16_t *out, const uint32_t *a) {
  __shared__ __align__(16) uint16_t s[32 * 8];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(s + threadIdx.x * 8)), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = s[i];
}
KERNEL group_product(float *out, uint64_t x, uint64_t y) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 1;\n}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(x), "l"(y), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
KERNEL specialised(int *a) {
  if (threadIdx.x < 128) { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); asm volatile("bar.arrive 1, 256;"); }
  else { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); asm volatile("bar.sync 1, 256;"); a[threadIdx.x] = 1; }
}
KERNEL dependents(int *a) {
  asm volatile("griddepcontrol.wait;");
  a[threadIdx.x] += 1;
  asm volatile("griddepcontrol.launch_dependents;");
  uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  a[threadIdx.x + 32] = elected;
}
#endif
