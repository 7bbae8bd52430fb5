// Functions, calls of every kind, control flow.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#define KERNEL extern "C" __global__ void
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ __noinline__ float axpy(float a, float x, float y) { return a * x + y; }
__device__ __noinline__ double4 four(double x) { return make_double4(x, 2 * x, 3 * x, 4 * x); }
__device__ __noinline__ void twice(int *p) { *p *= 2; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __device__ int elsewhere(int x, const char *name);
KERNEL calls(float *a, double4 *d, int *n) {
  a[0] = axpy(a[1], a[2], a[3]);
  d[0] = four(a[4]);
  twice(n);
  n[1] = fibonacci(n[2]);
}
typedef int (*Function)(int);
__device__ int plus1(int x) { return x + 1; }
__device__ int times3(int x) { return x * 3; }
__device__ Function functions[2] = {plus1, times3};
KERNEL pointers(int *a, int i) { a[i] = functions[i & 1](a[i + 1]); }
struct Shape { __device__ virtual float area() const = 0; __device__ virtual ~Shape() {} };
struct Square : Shape { float side; __device__ Square(float s) : side(s) {} __device__ float area() const override { return side * side; } };
struct Disc : Shape { float radius; __device__ Disc(float r) : radius(r) {} __device__ float area() const override { return 3.14f * radius * radius; } };
KERNEL virtuals(float *a, int flag) {
  Shape *shape = flag ? (Shape *)new Square(a[1]) : new Disc(a[2]);
  a[0] = shape->area();
  delete shape;
}
KERNEL output(int x, double d, const char *name) { printf("%d %f %s\n", x, d, name); assert(x > 0); if (x == 9) __trap(); if (x == 8) __brkpt(); }
KERNEL heap(int **a, int n) { int *p = (int *)malloc(n); a[0] = p; free(a[1]); }
KERNEL early(int *a) { if (a[INDEX] < 0) asm volatile("exit;"); a[INDEX] = 1; }

KERNEL table(int *a, int n) {
  int x = a[n];
  switch (n) {
    case 0: x += 3; break;
    case 1: x = a[3] * 7; break;
    case 2: x ^= a[5]; break;
    case 3: x = x << 3; twice(&x); break;
    case 4: x /= 3; break;
    case 5: a[9] = 1; break;
    case 6: x -= 11; break;
    case 7: x = ~x; break;
    case 8: x = -x; break;
    default: x = 0;
  }
  a[n] = x;
}
KERNEL collatz(const uint32_t *a, uint32_t *out) {
  uint32_t x = a[INDEX], steps = 0;
  while (x != 1) { x = x & 1 ? 3 * x + 1 : x / 2; steps++; }
  out[INDEX] = steps;
}
KERNEL nested(const int *a, int *out, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    if (a[i] < 0) continue;
    for (int j = i; j < n; j++) {
      if (a[j] == 7) goto done;
      if (a[j] & 1) sum += a[j]; else sum -= i;
      if (sum > 1000) break;
    }
  }
done:
  out[INDEX] = sum;
}
KERNEL mandelbrot(int *out, int width, float scale) {
  float cx = (INDEX % width) * scale - 2, cy = (INDEX / width) * scale - 1, x = 0, y = 0;
  int i = 0;
  for (; i < 200 && x * x + y * y < 4; i++) { float t = x * x - y * y + cx; y = 2 * x * y + cy; x = t; }
  out[INDEX] = i;
}
template <class T, int N> __global__ void polynomial(const T *x, T *out) {
  T value = 1, input = x[INDEX];
#pragma unroll
  for (int i = 0; i < N; i++) value = value * input + T(i);
  out[INDEX] = value;
}
#define POLYNOMIALS(T) template __global__ void polynomial<T, 4>(const T *, T *); template __global__ void polynomial<T, 32>(const T *, T *);
POLYNOMIALS(float) POLYNOMIALS(double) POLYNOMIALS(int) POLYNOMIALS(long long) POLYNOMIALS(unsigned char)
template <class T> __global__ void scan(T *a, int n) {
  __shared__ T s[2][256];
  int t = threadIdx.x, in = 0;
  s[0][t] = t < n ? a[t] : T(0);
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) { s[!in][t] = s[in][t] + (t >= d ? s[in][t - d] : T(0)); in = !in; __syncthreads(); }
  if (t < n) a[t] = s[in][t];
}
template __global__ void scan<int>(int *, int);
template __global__ void scan<float>(float *, int);
template <class T> __global__ void bitonic(T *a) {
  __shared__ T s[512];
  s[threadIdx.x] = a[threadIdx.x];
  s[threadIdx.x + 256] = a[threadIdx.x + 256];
  for (int k = 2; k <= 512; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < 512; i += 256) {
        int other = i ^ j;
        if (other > i && (s[i] > s[other]) == !(i & k)) { T t = s[i]; s[i] = s[other]; s[other] = t; }
      }
    }
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x];
  a[threadIdx.x + 256] = s[threadIdx.x + 256];
}
template __global__ void bitonic<int>(int *);
template __global__ void bitonic<float>(float *);
KERNEL histogram(const unsigned char *a, int *out, int n) {
  __shared__ int s[256];
  s[threadIdx.x & 255] = 0;
  __syncthreads();
  for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[a[i]], 1);
  __syncthreads();
  atomicAdd(&out[threadIdx.x & 255], s[threadIdx.x & 255]);
}
KERNEL softmax(const float *a, float *out, int n) {
  __shared__ float s[32];
  a += blockIdx.x * n; out += blockIdx.x * n;
  float best = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) best = fmaxf(best, a[i]);
  for (int d = 16; d; d /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, d));
  if (!(threadIdx.x & 31)) s[threadIdx.x / 32] = best;
  __syncthreads();
  best = s[0];
  for (int i = 1; i < blockDim.x / 32; i++) best = fmaxf(best, s[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(a[i] - best);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (!(threadIdx.x & 31)) s[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; i++) sum += s[i];
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = expf(a[i] - best) / sum;
}
KERNEL layer_norm(const float *a, const float *scale, const float *shift, float *out, int n) {
  float sum = 0, square = 0;
  a += blockIdx.x * n; out += blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += 32) { sum += a[i]; square += a[i] * a[i]; }
  for (int d = 16; d; d /= 2) { sum += __shfl_xor_sync(~0u, sum, d); square += __shfl_xor_sync(~0u, square, d); }
  float mean = sum / n, inverse = rsqrtf(square / n - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 32) out[i] = (a[i] - mean) * inverse * scale[i] + shift[i];
}
