// Matrix products: of float32 by the BLAS that Paddle ships, of bfloat16 factors with sums in float32 by its oneDNN.
#include "kernels.h"

namespace {

// dnnl_gemm_bf16bf16f32: c = alpha a b + beta c, row by row
typedef int (*Gemm)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const uint16_t* a,
                    int64_t lda, const uint16_t* b, int64_t ldb, float beta, float* c, int64_t ldc);
Gemm gemm = nullptr;

// To the nearest of the numbers with 8 bits of mantissa, of two equally near to the even one; NaN stays NaN.
inline uint16_t rounded(uint32_t bits) {
  const uint32_t nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t not_a_number = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? not_a_number : nearest);
}

}  // namespace

Sgemm sgemm = nullptr;

EXPORT void set_sgemm(void* function) { sgemm = reinterpret_cast<Sgemm>(function); }
EXPORT void set_gemm_bfloat16(void* function) { gemm = reinterpret_cast<Gemm>(function); }

EXPORT void round_to_bfloat16(int64_t size, const float* x, uint16_t* y) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < size; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, 4);
    y[i] = rounded(bits);
  }
}

// c [m, n] = a b, of matrices row by row; those to be transposed have their rows and columns exchanged
EXPORT void product_bfloat16(int64_t m, int64_t n, int64_t k, int transpose_a, int transpose_b, const uint16_t* a,
                             const uint16_t* b, float* c) {
  gemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, transpose_a ? m : k, b, transpose_b ? k : n,
       0.0f, c, n);
}

EXPORT void product_float32(int64_t m, int64_t n, int64_t k, int transpose_a, int transpose_b, const float* a,
                            const float* b, float* c) {
  product(m, n, k, {a, transpose_a ? m : k, transpose_a != 0}, {b, transpose_b ? k : n, transpose_b != 0}, c, n);
}
