// RoPE between the tensors of a model and the buffers of an operator: features of a head, row by row.
#pragma once
#include "kernels.h"

// Cosines and sines [seq, dim / 2] of each text (text_stride 0: the same of all); no table: nothing turns.
struct Rotation {
  const float *cosine, *sine;
  int64_t text_stride;
  int interleaved;  // pairs (2i, 2i + 1), otherwise (i, i + dim / 2)

  // out = factor R row; in out pair i is (i, i + dim / 2), whatever the layout: products do not see the order
  inline void turn(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
    const int64_t half = dim / 2;
    if (!cosine) {
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) out[i] = factor * row[i];
      return;
    }
    const float *c = cosine + text * text_stride + position * half, *s = sine + text * text_stride + position * half;
    if (interleaved) {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = factor * row[2 * i], b = factor * row[2 * i + 1];
        out[i] = a * c[i] - b * s[i];
        out[i + half] = a * s[i] + b * c[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = factor * row[i], b = factor * row[i + half];
        out[i] = a * c[i] - b * s[i];
        out[i + half] = a * s[i] + b * c[i];
      }
    }
  }

  // out = factor R^T row, undoes the order of turn
  inline void turn_back(const float* row, float* out, int64_t text, int64_t position, int64_t dim, float factor) const {
    const int64_t half = dim / 2;
    if (!cosine) {
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) out[i] = factor * row[i];
      return;
    }
    const float *c = cosine + text * text_stride + position * half, *s = sine + text * text_stride + position * half;
    if (interleaved) {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = factor * row[i], b = factor * row[i + half];
        out[2 * i] = a * c[i] + b * s[i];
        out[2 * i + 1] = b * c[i] - a * s[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = factor * row[i], b = factor * row[i + half];
        out[i] = a * c[i] + b * s[i];
        out[i + half] = b * c[i] - a * s[i];
      }
    }
  }
};
