// Memory of every space, atomics, warps, barriers, textures.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <stdint.h>

namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

#define ATOMICS(NAME, T)                                                     \
  KERNEL atomics_##NAME(T *a, T v) {                                         \
    a[0] = atomicAdd(a + 1, v);                                              \
    atomicExch(a + 2, v);                                                    \
  }                                                                          \
  KERNEL shared_atomics_##NAME(T *a, T v) {                                  \
    __shared__ T s[4];                                                       \
    if (threadIdx.x < 4) s[threadIdx.x] = (T)0;                              \
    __syncthreads();                                                         \
    atomicAdd(s + (threadIdx.x & 3), v);                                     \
    __syncthreads();                                                         \
    a[threadIdx.x & 3] = s[threadIdx.x & 3];                                 \
  }
ATOMICS(int, int)
ATOMICS(unsigned, unsigned)
ATOMICS(u64, unsigned long long)
ATOMICS(float, float)
#define BIT_ATOMICS(NAME, T)                                                 \
  KERNEL bit_atomics_##NAME(T *a, T v) {                                     \
    a[0] = atomicMin(a + 1, v) + atomicMax(a + 2, v) + atomicAnd(a + 3, v);  \
    a[4] = atomicOr(a + 5, v) + atomicXor(a + 6, v) + atomicCAS(a + 7, v, v + 1); \
  }
BIT_ATOMICS(int, int)
BIT_ATOMICS(unsigned, unsigned)
BIT_ATOMICS(u64, unsigned long long)
KERNEL counters(unsigned *a) { a[0] = atomicInc(a + 1, 7) + atomicDec(a + 2, 9); }
KERNEL atomics_double(double *a, double v) { atomicAdd(a, v); atomicAdd_system(a + 1, v); atomicAdd_block(a + 2, v); }
KERNEL atomics_half(__half2 *a, __half2 v) { atomicAdd(a, v); }
KERNEL atomics_bf16(__nv_bfloat162 *a, __nv_bfloat162 v) { atomicAdd(a, v); }
KERNEL fences(int *a) { a[0] = 1; __threadfence_block(); a[1] = 2; __threadfence(); a[2] = 3; __threadfence_system(); a[3] = 4; }

KERNEL shuffles(int *a, float *f) {
  unsigned mask = __activemask();
  int x = a[threadIdx.x];
  x += __shfl_sync(mask, x, 3) + __shfl_up_sync(mask, x, 1) + __shfl_down_sync(mask, x, 2, 16) + __shfl_xor_sync(mask, x, 4);
  f[threadIdx.x] = __shfl_xor_sync(~0u, f[threadIdx.x], 16);
  a[threadIdx.x] = x;
}
KERNEL votes(int *a) {
  int x = a[threadIdx.x];
  a[threadIdx.x] = __all_sync(~0u, x) + __any_sync(~0u, x > 2) + __ballot_sync(~0u, x & 1) + __match_any_sync(~0u, x);
  int all;
  a[threadIdx.x + 32] = __match_all_sync(~0u, x, &all) + all;
}
KERNEL redux(unsigned *a, int *b) {
  unsigned x = a[threadIdx.x];
  a[threadIdx.x] = __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) + __reduce_xor_sync(~0u, x);
  b[threadIdx.x] = __reduce_max_sync(~0u, b[threadIdx.x]);
}
KERNEL barriers(int *a) {
  a[0] = __syncthreads_count(a[threadIdx.x]) + __syncthreads_and(a[1]) + __syncthreads_or(a[2]);
  __syncwarp();
  __nanosleep(100);
}
KERNEL block_sum(const float *a, float *out, int n) {
  extern __shared__ float s[];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[blockIdx.x * n + i];
  s[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
  }
  if (!threadIdx.x) out[blockIdx.x] = s[0];
}
KERNEL cooperative(float *a) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  a[block.thread_rank()] = cg::reduce(tile, a[block.thread_rank()], cg::plus<float>());
  auto active = cg::coalesced_threads();
  a[active.thread_rank()] += active.shfl(1.0f, 0);
}
template <int SIZE> __global__ void transpose(const float *a, float *out, int n) {
  __shared__ float tile[SIZE][SIZE + 1];
  int x = blockIdx.x * SIZE + threadIdx.x, y = blockIdx.y * SIZE + threadIdx.y;
  for (int j = 0; j < SIZE; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * SIZE + threadIdx.x, y = blockIdx.x * SIZE + threadIdx.y;
  for (int j = 0; j < SIZE; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
template __global__ void transpose<16>(const float *, float *, int);
template __global__ void transpose<32>(const float *, float *, int);
template <class T, int TILE> __global__ void product(const T *a, const T *b, T *c, int n) {
  __shared__ T s[TILE][TILE], t[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  T sum = 0;
  for (int k = 0; k < n; k += TILE) {
    s[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < TILE; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
template __global__ void product<float, 16>(const float *, const float *, float *, int);
template __global__ void product<double, 8>(const double *, const double *, double *, int);
template __global__ void product<int, 32>(const int *, const int *, int *, int);

#define HINTS(NAME, T)                                                       \
  KERNEL hints_##NAME(const T *__restrict__ a, T *out) {                     \
    out[0] = __ldg(a + INDEX);                                               \
    __stcs(out + 1, __ldcs(a + 1)); __stcg(out + 2, __ldcg(a + 2));          \
    __stwt(out + 3, __ldlu(a + 3)); __stwb(out + 4, __ldcv(a + 4));          \
    __stcs(out + 5, __ldca(a + 5));                                          \
  }
HINTS(char, char) HINTS(short, short) HINTS(int, int) HINTS(long, long long) HINTS(float, float) HINTS(double, double)
HINTS(float2, float2) HINTS(float4, float4) HINTS(int4, int4) HINTS(double2, double2) HINTS(short4, short4) HINTS(uchar4, uchar4)

__constant__ float table[64] = {1, 2, 3, 4.5f, -0.f};
__constant__ int2 pairs[2] = {{1, 2}, {3, 4}};
__device__ int counter = 7;
__device__ double grid[3][5];
__device__ int *pointer = &counter;
__device__ const char *text = "a text in memory\n\t\"quoted\"";
__managed__ int managed = 3;
KERNEL constants(float *a) { a[threadIdx.x] = table[threadIdx.x & 63] + pairs[threadIdx.x & 1].y; }
KERNEL globals(int *a, int i) { a[0] = counter++ + *pointer + managed + text[i]; grid[i][1] += 2; }
KERNEL local_array(int *a, int n) {
  int local[40];
  for (int i = 0; i < 40; i++) local[i] = a[i] * n;
  for (int i = 0; i < n; i++) local[local[i] % 40] += i;
  a[n] = local[n % 40];
}
struct Big { int a[5]; double b; short c; };
KERNEL structs(Big big, Big *out) { out[0] = big; out[1].b = big.a[threadIdx.x % 5]; }
KERNEL __launch_bounds__(256, 2) bounded(float *a) { a[INDEX] *= 2; }
KERNEL __grid_constant_use(const __grid_constant__ Big big, int *a) { a[0] = big.a[a[1]]; }
KERNEL volatile_memory(volatile int *a) { a[0] = a[1] + a[2]; }
KERNEL generic_memory(int *a, int flag) {
  __shared__ int s[32];
  s[threadIdx.x] = a[threadIdx.x];
  int *p = flag ? s : a;
  p[threadIdx.x ^ 1] = __isShared(p) + __isGlobal(p) + (int)__cvta_generic_to_shared(s);
}
KERNEL clocks(long long *a, unsigned *b) {
  a[0] = clock64();
  b[0] = clock();
  unsigned smid, lane, mask; unsigned long long time;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  b[1] = smid + lane + mask; a[1] = time;
}
KERNEL textures(cudaTextureObject_t t, float *a, float4 *b) {
  a[0] = tex1D<float>(t, 0.5f) + tex2D<float>(t, 1.f, 2.f) + tex3D<float>(t, 1.f, 2.f, 3.f) + tex1Dfetch<float>(t, 3);
  a[1] = tex2DLod<float>(t, 1.f, 2.f, 1.f) + tex2DLayered<float>(t, 1.f, 2.f, 3) + texCubemap<float>(t, 1.f, 2.f, 3.f);
  b[0] = tex2D<float4>(t, 1.f, 2.f);
  b[1] = tex2Dgather<float4>(t, 1.f, 2.f, 1);
}
KERNEL surfaces(cudaSurfaceObject_t s, float *a) {
  surf2Dwrite(a[0], s, 4, 2);
  a[1] = surf2Dread<float>(s, 8, 3) + surf1Dread<float>(s, 4, cudaBoundaryModeClamp);
  surf3Dwrite(make_float4(1, 2, 3, 4), s, 16, 1, 2, cudaBoundaryModeZero);
}
template <class A, class C, int M, int N, int K> __global__ void fragments(const A *a, const A *b, C *c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, M, N, K, A, row_major> x;
  fragment<matrix_b, M, N, K, A, col_major> y;
  fragment<accumulator, M, N, K, C> z;
  fill_fragment(z, C(0));
  load_matrix_sync(x, a, K);
  load_matrix_sync(y, b, K);
  mma_sync(z, x, y, z);
  store_matrix_sync(c, z, N, mem_row_major);
}
template __global__ void fragments<__half, float, 16, 16, 16>(const __half *, const __half *, float *);
template __global__ void fragments<__half, __half, 32, 8, 16>(const __half *, const __half *, __half *);
template __global__ void fragments<__nv_bfloat16, float, 8, 32, 16>(const __nv_bfloat16 *, const __nv_bfloat16 *, float *);
template __global__ void fragments<signed char, int, 16, 16, 16>(const signed char *, const signed char *, int *);
template __global__ void fragments<double, double, 8, 8, 4>(const double *, const double *, double *);
