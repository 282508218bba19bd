// Shared by the operators: OpenMP SIMD loops, counter-based random bits, RoPE, matrix products by Paddle's BLAS.
// Tensors are float32, contiguous and row-major.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#else
inline int omp_get_max_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

// c_0 x^n + c_1 x^(n-1) + ... + c_n
template <typename... Coefficients>
inline float polynomial(float x, float first, Coefficients... rest) {
  float p = first;
  ((p = p * x + rest), ...);
  return p;
}

// e^x for x <= 88, relative error about 1e-7; 0 below -87. Written out so that loops over it are vectorized.
inline float exponential(float x) {
  const float bounded = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float shifted = bounded * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the sum is rounded to an integer
  const float n = shifted - 12582912.0f;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;  // |r| <= log(2) / 2
  const float p = polynomial(r, 1 / 5040.0f, 1 / 720.0f, 1 / 120.0f, 1 / 24.0f, 1 / 6.0f, 0.5f, 1.0f, 1.0f);
  int32_t bits;
  std::memcpy(&bits, &shifted, 4);
  bits = (bits + 127) << 23;  // the low bits of shifted are n
  float power;
  std::memcpy(&power, &bits, 4);
  return x < -87.0f ? 0.0f : p * power;
}

// A number with 8 bits of mantissa, the factor of a fast product.
struct bfloat16 {
  uint16_t bits;

  void operator=(float x) {  // the nearest, ties to even; NaN stays NaN
    uint32_t wide;
    std::memcpy(&wide, &x, 4);
    const uint32_t nearest = (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16, not_a_number = (wide >> 16) | 0x40u;
    bits = static_cast<uint16_t>((wide & 0x7FFFFFFFu) > 0x7F800000u ? not_a_number : nearest);
  }
};

inline void round_row(const float* x, int64_t width, bfloat16* y) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) y[i] = x[i];
}

// Dropout: whether an element is kept depends on (seed, row, column) alone, so backward computes it again, and no mask
// is stored.
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

  // 32 bits for a column: a hash by multiplications and shifts, which also mixes in the row's other 32 bits
  inline uint32_t operator()(uint32_t column) const {
    uint32_t x = column * 0x9E3779B1u + low;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = ((x ^ (x >> 15)) + high) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }
};

struct Dropout {
  uint32_t threshold;  // of 2^32 numbers; 0 for none
  uint64_t seed;

  // The factor for the elements that are kept, which keeps the mean.
  float scale() const { return static_cast<float>(4294967296.0 / (4294967296.0 - threshold)); }
  // The factor for an element with these bits.
  static float mask(uint32_t bits, uint32_t threshold, float scale) { return bits < threshold ? 0.0f : scale; }

  // y = factor * mask * x for a row; y may be x.
  template <typename T>
  void apply(uint64_t row, int64_t width, const float* x, T* y, float factor = 1.0f) const {
    if (threshold) {
      const RowBits bits(seed, row);
      const float scaled = factor * scale();
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) y[i] = x[i] * mask(bits(static_cast<uint32_t>(i)), threshold, scaled);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
    }
  }
};

inline float dot(const float* a, const float* b, int64_t size) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

// Sums over rows, separate for each thread and added in the order of the threads, so that equal calls give equal bits.
class ColumnSums {
 public:
  explicit ColumnSums(int64_t width) : width_(width), sums_(omp_get_max_threads() * width) {}
  float* of_thread() { return sums_.data() + omp_get_thread_num() * width_; }
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

constexpr bool kBack = true;

// RoPE between the tensors of a model and the buffers of an operator, which hold the features of a head row by row.
// Cosines and sines are [seq, dim / 2] for each text (text_stride 0: shared by all); without them nothing is rotated.
struct Rotation {
  const float *cosine, *sine;
  int64_t text_stride;
  int interleaved;  // pairs (2i, 2i + 1), otherwise (i, i + dim / 2)

  // The feature, in the order of the tensor, at place f of a buffer.
  int64_t feature(int64_t f, int64_t dim) const { return interleaved ? 2 * f % dim + 2 * f / dim : f; }

  // out = factor R row, with pair i at (i, i + dim / 2) in either layout, since products do not depend on the order.
  // With `back`, out = factor R^T row, in the order of the tensor
  template <bool back = false>
  void turn(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
    const int64_t half = dim / 2, at = text * text_stride + position * half;
    if (!cosine) {
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) out[i] = factor * row[i];
    } else if (interleaved) {
      turn_pairs<back, 2>(row, out, cosine + at, sine + at, half, factor);
    } else {
      turn_pairs<back, 1>(row, out, cosine + at, sine + at, half, factor);
    }
  }

 private:
  // pair i is (step * i, step * i + apart) in the tensor, which is the input or, with `back`, the output
  template <bool back, int step>
  static void turn_pairs(const float* x, float* y, const float* c, const float* s, int64_t half, float factor) {
    const int64_t apart = step == 2 ? 1 : half, a_in = back ? 1 : step, b_in = back ? half : apart;
    const int64_t a_out = back ? step : 1, b_out = back ? apart : half;
#pragma omp simd
    for (int64_t i = 0; i < half; ++i) {
      const float a = factor * x[a_in * i], b = factor * x[a_in * i + b_in];
      y[a_out * i] = back ? a * c[i] + b * s[i] : a * c[i] - b * s[i];
      y[a_out * i + b_out] = back ? b * c[i] - a * s[i] : a * s[i] + b * c[i];
    }
  }
};

// cblas_sgemm of the library that Paddle ships; see library.py
typedef void (*Sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                      int lda, const float* b, int ldb, float beta, float* c, int ldc);
extern Sgemm sgemm;
constexpr int kRows = 101, kPlain = 111, kTransposed = 112;

template <typename T>
struct MatrixOf {
  const T* data;
  int64_t stride;  // from row to row
  bool transposed = false;

  const T* row(int64_t i) const { return data + i * stride; }
};
typedef MatrixOf<float> Matrix;

// c = a b + beta c with m rows and n columns; k is the inner size. beta is 0 or 1.
inline void product(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, float* c,
                    int64_t stride, float beta = 0) {
  sgemm(kRows, a.transposed ? kTransposed : kPlain, b.transposed ? kTransposed : kPlain, static_cast<int>(m),
        static_cast<int>(n), static_cast<int>(k), 1.0f, a.data, static_cast<int>(a.stride), b.data,
        static_cast<int>(b.stride), beta, c, static_cast<int>(stride));
}
void product(int64_t m, int64_t n, int64_t k, const MatrixOf<bfloat16>& a, const MatrixOf<bfloat16>& b, float* c,
             int64_t stride, float beta = 0);
