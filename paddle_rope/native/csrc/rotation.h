// RoPE between the tensors of a model and the buffers of an operator: features of a head, row by row.
#pragma once
#include "kernels.h"

// Cosines and sines [seq, dim / 2] of each text (text_stride 0: the same of all); no table: nothing turns.
struct Rotation {
  const float *cosine, *sine;
  int64_t text_stride;
  int interleaved;  // pairs (2i, 2i + 1), otherwise (i, i + dim / 2)

  // out = factor R row; in out pair i is (i, i + dim / 2), whatever the layout: products do not see the order
  void turn(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
    apply<false>(row, out, text, position, dim, factor);
  }

  // out = factor R^T row, undoes the order of turn
  void turn_back(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
    apply<true>(row, out, text, position, dim, factor);
  }

 private:
  template <bool back>
  void apply(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
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

  // pair i is (step * i, step * i + apart) in the tensor: the input, or on the way back the output
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
