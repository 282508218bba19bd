// norm(residual + dropout(x)) over rows: layer norm, or RMS norm without centering, weight and bias; and dropout alone.
#include "kernels.h"

// residual, weight, bias and the outputs for backward, normalized [rows, width] and 1 / deviation, may be null.
EXPORT void residual_norm_forward(int64_t rows, int64_t width, const float* residual, const float* x,
                                  const float* weight, const float* bias, int centered, float epsilon,
                                  uint32_t threshold, uint64_t seed, float* y, float* normalized,
                                  float* inverse_deviations) {
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
  }
}

// weight, d_weight, d_bias, d_residual and d_x may be null.
EXPORT void residual_norm_backward(int64_t rows, int64_t width, const float* d_y, const float* weight, int centered,
                                   uint32_t threshold, uint64_t seed, const float* normalized,
                                   const float* inverse_deviations, float* d_residual, float* d_x, float* d_weight,
                                   float* d_bias) {
  const Dropout dropout{threshold, seed};
  ColumnSums weight_sums(weight ? width : 0), bias_sums(weight ? width : 0);
#pragma omp parallel
  {
    std::vector<float> buffer(width);
    float *to_weight = weight_sums.of_thread(), *to_bias = bias_sums.of_thread(), *d_sum = buffer.data();
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const float *given = d_y + row * width, *unit = normalized + row * width;
      float mean = 0.0f, along = 0.0f;
      if (weight) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
          to_bias[i] += given[i];
          to_weight[i] += given[i] * unit[i];
          d_sum[i] = given[i] * weight[i];
        }
      } else {
        std::memcpy(d_sum, given, width * sizeof(float));
      }
#pragma omp simd reduction(+ : mean, along)
      for (int64_t i = 0; i < width; ++i) {
        mean += d_sum[i];
        along += d_sum[i] * unit[i];
      }
      mean = centered ? mean / width : 0.0f;
      along /= width;
      const float inverse = inverse_deviations[row];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) d_sum[i] = (d_sum[i] - mean - unit[i] * along) * inverse;
      if (d_residual) std::memcpy(d_residual + row * width, d_sum, width * sizeof(float));
      if (d_x) dropout.apply(row, width, d_sum, d_x + row * width);
    }
  }
  if (d_weight) {
    weight_sums.write(d_weight);
    bias_sums.write(d_bias);
  }
}

// y = x * mask; its own backward.
EXPORT void dropout(int64_t rows, int64_t width, const float* x, uint32_t threshold, uint64_t seed, float* y) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row)
    Dropout{threshold, seed}.apply(row, width, x + row * width, y + row * width);
}
