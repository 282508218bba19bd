// Linear layers after their products: activation(x + bias) over rows, and its gradients.
#include <initializer_list>

#include "kernels.h"

namespace {

enum Activation { kNone, kRelu, kGelu, kGeluTanh, kTanh };

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
void forward(int64_t rows, int64_t width, float* x, const float* bias, float* y, bfloat16* rounded) {
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
    if (rounded) round_row(kind == kNone ? in : out, width, rounded + row * width);
  }
}

template <int kind>
void backward(int64_t rows, int64_t width, const float* kept, const float* grad_output, float* grad_x,
              float* grad_bias, bfloat16* rounded) {
  ColumnSums bias_sums(grad_bias ? width : 0);
#pragma omp parallel
  {
    float* to_bias = bias_sums.of_thread();
    std::vector<float> buffer(grad_x || kind == kNone ? 0 : width);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const float *given = grad_output + row * width, *at = kept ? kept + row * width : nullptr;
      float* out = grad_x ? grad_x + row * width : buffer.data();
      if (kind != kNone) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) out[i] = given[i] * derivative<kind>(at[i]);
        given = out;
      }
      if (grad_bias) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) to_bias[i] += given[i];
      }
      if (rounded) round_row(given, width, rounded + row * width);
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

// x += bias, y = activation(x); y may be x, and is not written without an activation. bias may be null, and so may
// rounded, the result in bfloat16.
EXPORT void activation_forward(int64_t rows, int64_t width, const char* name, float* x, const float* bias, float* y,
                               bfloat16* rounded) {
  const auto forms = {forward<kNone>, forward<kRelu>, forward<kGelu>, forward<kGeluTanh>, forward<kTanh>};
  forms.begin()[activation_of(name)](rows, width, x, bias, y, rounded);
}

// kept: x + bias, or y for relu and tanh, null without an activation. Each of the gradients, of x in float32, of the
// bias, and of x in bfloat16, may be null.
EXPORT void activation_backward(int64_t rows, int64_t width, const char* name, const float* kept,
                                const float* grad_output, float* grad_x, float* grad_bias, bfloat16* rounded) {
  const auto forms = {backward<kNone>, backward<kRelu>, backward<kGelu>, backward<kGeluTanh>, backward<kTanh>};
  forms.begin()[activation_of(name)](rows, width, kept, grad_output, grad_x, grad_bias, rounded);
}
