// What the operators share: vectors by OpenMP SIMD, random bits by counter, matrix products of Paddle's BLAS.
// Tensors are float32, contiguous, row by row.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

// e^x for x <= 88, relative error about 1e-7; 0 under -87. Written out so that loops over it become vectors.
inline float exponential(float x) {
  const float bounded = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float shifted = bounded * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum is rounded to an integer
  const float n = shifted - 12582912.0f;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;  // |r| <= log(2) / 2
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, 4);
  bits = (bits + 127) << 23;  // the low bits of shifted are n
  float power;
  std::memcpy(&power, &bits, 4);
  return x < -87.0f ? 0.0f : p * power;
}

// Dropout: whether an element is kept depends on (seed, row, column) alone, so backward asks again, and no mask is stored.
struct RowBits {
  uint32_t low, high;

  RowBits(uint64_t seed, uint64_t row) {  // the finalizer of splitmix64
    uint64_t z = seed + (row + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    low = static_cast<uint32_t>(z);
    high = static_cast<uint32_t>(z >> 32) | 1u;
  }

  // 32 bits for a column: multiplications and shifts, between them the other half of what the row has
  inline uint32_t operator()(uint32_t column) const {
    uint32_t x = column * 0x9E3779B1u + low;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = ((x ^ (x >> 15)) + high) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }
};

// What dropout multiplies by: 0 where the bits are under the threshold, else the scale.
inline float kept(uint32_t bits, uint32_t threshold, float scale) { return bits < threshold ? 0.0f : scale; }

inline int thread_count() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

inline int thread_number() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Sums over rows, each thread's apart and added in the order of the threads: equal calls give equal bits.
class ColumnSums {
 public:
  explicit ColumnSums(int64_t width) : width_(width), sums_(thread_count() * width) {}
  float* of_thread() { return sums_.data() + thread_number() * width_; }
  void write(float* totals) const {
    for (int64_t i = 0; i < width_; ++i) {
      totals[i] = 0.0f;
      for (size_t start = 0; start < sums_.size(); start += width_) totals[i] += sums_[start + i];
    }
  }

 private:
  int64_t width_;
  std::vector<float> sums_;
};

// cblas_sgemm of the library that Paddle ships; see library.py
typedef void (*Sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                      const float* b, int ldb, float beta, float* c, int ldc);
extern Sgemm sgemm;
constexpr int kRows = 101, kPlain = 111, kTransposed = 112;

// c = alpha a b + beta c, of matrices whose rows stand lda, ldb, ldc apart.
inline void product(int m, int n, int k, float alpha, const float* a, int64_t lda, bool transpose_a, const float* b,
                    int64_t ldb, bool transpose_b, float beta, float* c, int64_t ldc) {
  sgemm(kRows, transpose_a ? kTransposed : kPlain, transpose_b ? kTransposed : kPlain, m, n, k, alpha, a,
        static_cast<int>(lda), b, static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}
