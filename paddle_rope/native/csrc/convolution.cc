// Depthwise convolution: y_i = sum_t w_t * x_{i + t}, over the tokens of the same segment that are not padding.
#include "kernels.h"

namespace {

struct Texts {
  int64_t seq;
  const uint8_t* key_mask;  // [batch, seq], 0 at padding, or null
  const int64_t* segments;  // [batch, seq], or null

  // whether a token sees the one `lag` after it; `row` counts the tokens of all texts
  bool sees(int64_t row, int64_t lag) const {
    const int64_t place = row % seq + lag, other = row + lag;
    if (place < 0 || place >= seq) return false;
    return (!key_mask || key_mask[other]) && (!segments || segments[row] == segments[other]);
  }
};

}  // namespace

// x, y: [batch, seq, width]; weight [size, width], whose row `before` is w_0.
EXPORT void convolution_forward(int64_t batch, int64_t seq, int64_t width, int64_t size, int64_t before,
                                const uint8_t* key_mask, const int64_t* segments, const float* x, const float* weight,
                                float* y) {
  const Texts texts{seq, key_mask, segments};
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < batch * seq; ++row) {
    float* out = y + row * width;
    std::memset(out, 0, width * sizeof(float));
    for (int64_t lag = -before; lag < size - before; ++lag) {
      if (!texts.sees(row, lag)) continue;
      const float *in = x + (row + lag) * width, *w = weight + (lag + before) * width;
#pragma omp simd
      for (int64_t f = 0; f < width; ++f) out[f] += w[f] * in[f];
    }
  }
}

// grad_x and grad_weight may be null.
EXPORT void convolution_backward(int64_t batch, int64_t seq, int64_t width, int64_t size, int64_t before,
                                 const uint8_t* key_mask, const int64_t* segments, const float* x, const float* weight,
                                 const float* grad_output, float* grad_x, float* grad_weight) {
  const Texts texts{seq, key_mask, segments};
  ColumnSums sums(grad_weight ? size * width : 0);
#pragma omp parallel
  {
    float* to_weight = sums.of_thread();
#pragma omp for schedule(static)
    for (int64_t row = 0; row < batch * seq; ++row) {
      const float* in = x + row * width;
      float* out = grad_x ? grad_x + row * width : nullptr;
      if (out) std::memset(out, 0, width * sizeof(float));
      for (int64_t lag = -before; lag < size - before; ++lag) {  // the token at row - lag sees this one at its lag
        const int64_t from = row - lag;
        if (from < 0 || from >= batch * seq || !texts.sees(from, lag)) continue;
        const float *given = grad_output + from * width, *w = weight + (lag + before) * width;
        float* total = to_weight + (lag + before) * width;
        if (out) {
#pragma omp simd
          for (int64_t f = 0; f < width; ++f) out[f] += w[f] * given[f];
        }
        if (grad_weight) {
#pragma omp simd
          for (int64_t f = 0; f < width; ++f) total[f] += given[f] * in[f];
        }
      }
    }
  }
  if (grad_weight) sums.write(grad_weight);
}
