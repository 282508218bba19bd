// Linear layers: matrix products of bfloat16 factors with float32 sums by the oneDNN that Paddle ships (Paddle itself
// multiplies in float32); activation(x + bias) over rows, and its gradients.
#include <initializer_list>

#include "kernels.h"

namespace {

enum Activation { kNone, kRelu, kGelu, kGeluTanh, kTanh };

// dnnl_gemm_bf16bf16f32: c = alpha a b + beta c, row-major
typedef int (*Gemm)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const uint16_t* a,
                    int64_t lda, const uint16_t* b, int64_t ldb, float beta, float* c, int64_t ldc);
Gemm gemm = nullptr;

// Rounds to the nearest number with 8 bits of mantissa, ties to even; NaN stays NaN.
inline uint16_t rounded(uint32_t bits) {
  const uint32_t nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t not_a_number = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? not_a_number : nearest);
}

constexpr float kRootHalf = 0.70710678f, kDensity = 0.39894228f;   // sqrt(1 / 2), 1 / sqrt(2 pi)
constexpr float kTanhScale = 1.59576912f, kTanhCubic = 0.044715f;  // 2 sqrt(2 / pi)

// The normal distribution function; e = exp(-x^2 / 2). erfc(z) = e P(t), t = 1 / (1 + z / 2), with P fitted to erfc by
// least squares on 0 <= z <= 10: relative error 2e-8 before rounding.
inline float normal_distribution(float x, float e) {
  const float z = std::fabs(x) * kRootHalf;
  const float t = 1.0f / (1.0f + 0.5f * z);
  const float p = polynomial(t, 0.013534649275243282f, -0.12961405515670776f, 0.44281113147735596f,
                             -0.6870458126068115f, 0.43415188789367676f, -0.10452847927808762f, 0.22744551301002502f,
                             0.23828822374343872f, 0.2828940153121948f, 0.2820628881454468f);
  const float tail = 0.5f * e * p * t;
  return x < 0.0f ? tail : 1.0f - tail;
}

inline float logistic(float x) { return 1.0f / (1.0f + exponential(x < -80.0f ? 80.0f : -x)); }

template <int kind>  // not kNone, as below
inline float activated(float x) {
  if (kind == kRelu) return x > 0.0f ? x : 0.0f;
  if (kind == kGelu) return x * normal_distribution(x, exponential(-0.5f * x * x));
  if (kind == kGeluTanh) return x * logistic(kTanhScale * (x + kTanhCubic * x * x * x));
  return 2.0f * logistic(2.0f * x) - 1.0f;  // tanh
}

// of the activation at x = input + bias; for relu and tanh, x is the output
template <int kind>
inline float derivative(float x) {
  if (kind == kRelu) return x > 0.0f ? 1.0f : 0.0f;
  if (kind == kGelu) {
    const float e = exponential(-0.5f * x * x);
    return normal_distribution(x, e) + x * e * kDensity;
  }
  if (kind == kGeluTanh) {
    const float s = logistic(kTanhScale * (x + kTanhCubic * x * x * x));
    return s + x * s * (1.0f - s) * kTanhScale * (1.0f + 3.0f * kTanhCubic * x * x);
  }
  return 1.0f - x * x;  // of tanh
}

template <int kind>
void forward(int64_t rows, int64_t width, float* x, const float* bias, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    float *in = x + row * width, *out = y + row * width;
    if (bias) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) in[i] += bias[i];
    }
    if (kind != kNone) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] = activated<kind>(in[i]);
    }
  }
}

template <int kind>
void backward(int64_t rows, int64_t width, const float* kept, const float* grad_output, float* grad_x,
              float* grad_bias) {
  ColumnSums bias_sums(grad_bias ? width : 0);
#pragma omp parallel
  {
    float* to_bias = bias_sums.of_thread();
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const float *given = grad_output + row * width, *at = kept ? kept + row * width : nullptr;
      float* out = grad_x ? grad_x + row * width : nullptr;
      if (kind != kNone) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) out[i] = given[i] * derivative<kind>(at[i]);
        given = out;
      }
      if (grad_bias) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) to_bias[i] += given[i];
      }
    }
  }
  if (grad_bias) bias_sums.write(grad_bias);
}

// The number of an activation by its name in Python; kNone for null.
Activation activation_of(const char* name) {
  if (!name) return kNone;
  if (!std::strcmp(name, "relu")) return kRelu;
  if (!std::strcmp(name, "gelu")) return kGelu;
  return std::strcmp(name, "gelu_tanh") ? kTanh : kGeluTanh;
}

}  // namespace

// x += bias, y = activation(x); y may be x, and is not written without an activation. bias may be null.
EXPORT void activation_forward(int64_t rows, int64_t width, const char* name, float* x, const float* bias, float* y) {
  const auto forms = {forward<kNone>, forward<kRelu>, forward<kGelu>, forward<kGeluTanh>, forward<kTanh>};
  forms.begin()[activation_of(name)](rows, width, x, bias, y);
}

// kept: x + bias, or y for relu and tanh; without an activation, kept and grad_x are null. grad_bias may be null.
EXPORT void activation_backward(int64_t rows, int64_t width, const char* name, const float* kept,
                                const float* grad_output, float* grad_x, float* grad_bias) {
  const auto forms = {backward<kNone>, backward<kRelu>, backward<kGelu>, backward<kGeluTanh>, backward<kTanh>};
  forms.begin()[activation_of(name)](rows, width, kept, grad_output, grad_x, grad_bias);
}

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

// c [m, n] = a b for row-major matrices; a factor to be transposed is stored with rows and columns exchanged
EXPORT void product_bfloat16(int64_t m, int64_t n, int64_t k, int transpose_a, int transpose_b, const uint16_t* a,
                             const uint16_t* b, float* c) {
  gemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, transpose_a ? m : k, b, transpose_b ? k : n,
       0.0f, c, n);
}
