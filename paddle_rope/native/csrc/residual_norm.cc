// norm(residual + dropout(x)) over rows: layer norm, or RMS norm without centering, weight and bias; and dropout alone.
#include "kernels.h"

// residual, weight, bias and the outputs for backward, normalized [rows, width] and 1 / deviation, may be null, and so
// may rounded, y in bfloat16.
EXPORT void residual_norm_forward(int64_t rows, int64_t width, const float* residual, const float* x,
                                  const float* weight, const float* bias, int centered, float epsilon,
                                  uint32_t threshold, uint64_t seed, float* y, bfloat16* rounded,
                                  float* normalized, float* inverse_deviations) {
  const Dropout dropout{threshold, seed};
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* old = residual ? residual + row * width : nullptr;
    float *out = y + row * width, *sum = normalized ? normalized + row * width : out;
    dropout.apply(row, width, x + row * width, sum);
    if (old) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) sum[i] += old[i];
    }
    float mean = 0.0f, square = 0.0f;
    if (centered) {
#pragma omp simd reduction(+ : mean)
      for (int64_t i = 0; i < width; ++i) mean += sum[i];
      mean /= width;
    }
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < width; ++i) square += (sum[i] - mean) * (sum[i] - mean);
    const float inverse = 1.0f / std::sqrt(square / width + epsilon);
    if (inverse_deviations) inverse_deviations[row] = inverse;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sum[i] = (sum[i] - mean) * inverse;
    if (weight) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] = sum[i] * weight[i] + bias[i];
    } else if (out != sum) {
      std::memcpy(out, sum, width * sizeof(float));
    }
    if (rounded) round_row(out, width, rounded + row * width);
  }
}

// weight, grad_weight, grad_bias, grad_residual and grad_x may be null.
EXPORT void residual_norm_backward(int64_t rows, int64_t width, const float* grad_output, const float* weight,
                                   int centered, uint32_t threshold, uint64_t seed, const float* normalized,
                                   const float* inverse_deviations, float* grad_residual, float* grad_x,
                                   float* grad_weight, float* grad_bias) {
  const Dropout dropout{threshold, seed};
  ColumnSums weight_sums(weight ? width : 0), bias_sums(weight ? width : 0);
#pragma omp parallel
  {
    std::vector<float> buffer(width);
    float *to_weight = weight_sums.of_thread(), *to_bias = bias_sums.of_thread(), *grad_sum = buffer.data();
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const float *given = grad_output + row * width, *unit = normalized + row * width;
      float mean = 0.0f, along = 0.0f;
      if (weight) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
          to_bias[i] += given[i];
          to_weight[i] += given[i] * unit[i];
          grad_sum[i] = given[i] * weight[i];
        }
      } else {
        std::memcpy(grad_sum, given, width * sizeof(float));
      }
#pragma omp simd reduction(+ : mean, along)
      for (int64_t i = 0; i < width; ++i) {
        mean += grad_sum[i];
        along += grad_sum[i] * unit[i];
      }
      mean = centered ? mean / width : 0.0f;
      along /= width;
      const float inverse = inverse_deviations[row];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) grad_sum[i] = (grad_sum[i] - mean - unit[i] * along) * inverse;
      if (grad_residual) std::memcpy(grad_residual + row * width, grad_sum, width * sizeof(float));
      if (grad_x) dropout.apply(row, width, grad_sum, grad_x + row * width);
    }
  }
  if (grad_weight) {
    weight_sums.write(grad_weight);
    bias_sums.write(grad_bias);
  }
}

// y = x * mask; its own backward.
EXPORT void dropout(int64_t rows, int64_t width, const float* x, uint32_t threshold, uint64_t seed, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) Dropout{threshold, seed}.apply(row, width, x + row * width, y + row * width);
}
