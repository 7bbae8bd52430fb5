// A kernel for each function and type: what nvcc emits for arithmetic, math functions and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define UNARY(NAME, T, R, EXPRESSION)                                        \
  extern "C" __global__ void NAME(const T *a, R *out) {                      \
    T x = a[INDEX];                                                          \
    out[INDEX] = EXPRESSION;                                                 \
  }
#define BINARY(NAME, T, R, EXPRESSION)                                       \
  extern "C" __global__ void NAME(const T *a, const T *b, R *out, int n) {   \
    int i = INDEX;                                                           \
    if (i >= n) return;                                                      \
    T x = a[i], y = b[i];                                                    \
    out[i] = EXPRESSION;                                                     \
  }

#define INTEGERS(T)                                                          \
  BINARY(add_##T, T, T, x + y)                                               \
  BINARY(sub_##T, T, T, x - y)                                               \
  BINARY(mul_##T, T, T, x *y)                                                \
  BINARY(div_##T, T, T, x / y)                                               \
  BINARY(rem_##T, T, T, x % y)                                               \
  BINARY(shift_##T, T, T, (x << (y & 7)) ^ (x >> (y & 3)))                   \
  BINARY(logic_##T, T, T, (x & y) | (~x ^ y))                                \
  BINARY(min_max_##T, T, T, (x < y ? x : y) + (x > 3 ? x : 3))               \
  UNARY(to_f32_##T, T, float, (float)x)                                      \
  UNARY(to_f64_##T, T, double, (double)x)
INTEGERS(int8_t)
INTEGERS(uint8_t)
INTEGERS(int16_t)
INTEGERS(uint16_t)
INTEGERS(int32_t)
INTEGERS(uint32_t)
INTEGERS(int64_t)
INTEGERS(uint64_t)

#define FLOATS(T)                                                            \
  BINARY(add_##T, T, T, x + y)                                               \
  BINARY(fused_##T, T, T, x *y + x)                                          \
  BINARY(div_##T, T, T, x / y)                                               \
  BINARY(compare_##T, T, int, (x < y) + 2 * (x == y) + 4 * (x >= y) + 8 * (x != x)) \
  UNARY(to_int_##T, T, int, (int)x)                                          \
  UNARY(to_uint64_##T, T, uint64_t, (uint64_t)x)                             \
  UNARY(to_half_##T, T, __half, (__half)x)                                   \
  UNARY(to_bf16_##T, T, __nv_bfloat16, (__nv_bfloat16)x)
FLOATS(float)
FLOATS(double)

#define MATH(NAME) UNARY(f32_##NAME, float, float, NAME##f(x)) UNARY(f64_##NAME, double, double, NAME(x))
MATH(sin) MATH(cos) MATH(tan) MATH(exp) MATH(exp2) MATH(expm1) MATH(log) MATH(log2) MATH(log1p)
MATH(sqrt) MATH(rsqrt) MATH(cbrt) MATH(tanh) MATH(sinh) MATH(atan) MATH(asin) MATH(erf) MATH(erfc)
MATH(lgamma) MATH(tgamma) MATH(floor) MATH(ceil) MATH(trunc) MATH(rint) MATH(round) MATH(fabs) MATH(logb)
BINARY(f32_pow, float, float, powf(x, y))
BINARY(f64_pow, double, double, pow(x, y))
BINARY(f32_atan2, float, float, atan2f(x, y))
BINARY(f32_fmod, float, float, fmodf(x, y))
BINARY(f32_remainder, float, float, remainderf(x, y))
BINARY(f32_hypot, float, float, hypotf(x, y))
BINARY(f32_copysign, float, float, copysignf(x, y))
BINARY(f32_nextafter, float, float, nextafterf(x, y))
BINARY(f32_fmin_fmax, float, float, fminf(x, y) + fmaxf(x, y))

BINARY(fast_div, float, float, __fdividef(x, y))
UNARY(fast_math, float, float, __sinf(x) + __cosf(x) + __expf(x) + __logf(x) + __saturatef(x) + __frsqrt_rn(x))
BINARY(f32_rounding, float, float, __fadd_rz(x, y) + __fmul_ru(x, y) + __fmaf_rd(x, y, x) + __fsqrt_rz(x) + __frcp_rd(x) + __fdiv_ru(x, y))
BINARY(f64_rounding, double, double, __dadd_rz(x, y) + __dmul_ru(x, y) + __fma_rd(x, y, x) + __dsqrt_rz(x) + __drcp_rd(x) + __ddiv_ru(x, y))
UNARY(f32_conversions, float, int, __float2int_rz(x) + __float2int_ru(x) + __float2uint_rd(x) + __float_as_int(x))
UNARY(f64_conversions, double, long long, __double2ll_rn(x) + __double2hiint(x) + __double2loint(x) + __double2float_rz(x))
UNARY(int_conversions, int, float, __int2float_rz(x) + __uint2float_ru(x) + __int_as_float(x))

UNARY(bits32, unsigned, unsigned, __popc(x) + __clz(x) + __ffs(x) + __brev(x))
UNARY(bits64, unsigned long long, unsigned long long, __popcll(x) + __clzll(x) + __ffsll(x) + __brevll(x))
BINARY(bytes, unsigned, unsigned, __byte_perm(x, y, 0x3175) + __funnelshift_l(x, y, 5) + __funnelshift_rc(x, y, y))
BINARY(products, int, int, __mulhi(x, y) + __mul24(x, y) + __sad(x, y, 3) + __hadd(x, y) + __rhadd(x, y))
BINARY(products64, long long, long long, __mul64hi(x, y))
BINARY(dot_products, int, int, __dp4a(x, y, 7) + __dp2a_lo(x, y, 9))
BINARY(simd_bytes, unsigned, unsigned, __vadd4(x, y) ^ __vabsdiffu4(x, y) ^ __vmaxs2(x, y) ^ __vcmpgtu4(x, y) ^ __vavgs4(x, y))
BINARY(simd_dpx, int, int, __viaddmax_s32(x, y, 3) + __vimax3_s32(x, y, 1) + __viaddmin_s16x2_relu(x, y, x))

#define PACKED(T, P)                                                         \
  BINARY(P##_arithmetic, P, P, __hadd2(__hmul2(x, y), __hfma2(x, y, x)))     \
  BINARY(P##_extrema, P, P, __hmin2(x, __hmax2(y, __hneg2(x))))              \
  BINARY(P##_compare, P, P, __hlt2(x, y))                                    \
  BINARY(T##_arithmetic, T, T, x + y * x - y / x)                            \
  BINARY(T##_compare, T, int, (x < y) + 2 * __hisnan(x))                     \
  UNARY(T##_to_float, T, float, (float)x)                                    \
  UNARY(T##_to_int, T, int, (int)x)                                          \
  UNARY(T##_math, T, T, hexp(x) + hsin(x) + hlog(x) + hsqrt(x) + hrcp(x) + htanh(x))
PACKED(__half, __half2)
PACKED(__nv_bfloat16, __nv_bfloat162)
UNARY(to_e4m3, float, __nv_fp8_e4m3, __nv_fp8_e4m3(x))
UNARY(to_e5m2, float, __nv_fp8_e5m2, __nv_fp8_e5m2(x))
UNARY(of_e4m3, __nv_fp8_e4m3, float, (float)x)
UNARY(to_e4m3x2, float2, __nv_fp8x2_e4m3, __nv_fp8x2_e4m3(x))
UNARY(of_e5m2x4, __nv_fp8x4_e5m2, float4, (float4)x)

extern "C" __global__ void wide_products(const unsigned long long *a, unsigned long long *out) {
  unsigned __int128 x = (unsigned __int128)a[0] * a[1] + a[2];
  out[0] = (unsigned long long)(x >> 64);
  out[1] = (unsigned long long)x;
}
