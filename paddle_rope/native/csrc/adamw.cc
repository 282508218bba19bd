// One step of AdamW for all weights of a model, with clipping by the global norm of the gradients.
#include <algorithm>
#include <numeric>

#include "kernels.h"

namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that one thread takes at a time

struct Piece {
  int64_t weight, start, size;
};

// The pieces are added in order, so that the bits do not depend on the number of threads.
double norm_of(const std::vector<Piece>& pieces, const float* const* gradients) {
  const int64_t count = static_cast<int64_t>(pieces.size());
  std::vector<double> sums(count);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float* gradient = gradients[pieces[i].weight] + pieces[i].start;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < pieces[i].size; ++j) sum += static_cast<double>(gradient[j]) * gradient[j];
    sums[i] = sum;
  }
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

}  // namespace

// means and squares are the moving averages m and v; *_powers are beta to the power of this step, one number for each
// weight, and are then multiplied by beta; max_norm 0 for no clipping. Gradients are not changed.
EXPORT void adamw_step(int64_t count, const int64_t* sizes, const float* rates, const float* decays,
                       float* const* weights, const float* const* gradients, float* const* means, float* const* squares,
                       float* const* beta1_powers, float* const* beta2_powers, float beta1, float beta2, float epsilon,
                       float max_norm) {
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t start = 0; start < sizes[i]; start += kPiece)
      pieces.push_back({i, start, std::min(sizes[i] - start, kPiece)});
  const double norm = max_norm > 0.0f ? norm_of(pieces, gradients) : 0.0;
  const float factor = norm <= max_norm ? 1.0f : static_cast<float>(max_norm / norm);  // also where it is not a number
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < static_cast<int64_t>(pieces.size()); ++i) {
    const Piece& piece = pieces[i];
    const float rate = rates[piece.weight] / (1.0f - *beta1_powers[piece.weight]);
    const float correction = 1.0f / std::sqrt(1.0f - *beta2_powers[piece.weight]);
    const float shrunk = 1.0f - rates[piece.weight] * decays[piece.weight];
    float *w = weights[piece.weight] + piece.start, *m = means[piece.weight] + piece.start;
    float* v = squares[piece.weight] + piece.start;
    const float* g = gradients[piece.weight] + piece.start;
#pragma omp simd
    for (int64_t j = 0; j < piece.size; ++j) {
      const float gradient = g[j] * factor;
      m[j] = beta1 * m[j] + (1.0f - beta1) * gradient;
      v[j] = beta2 * v[j] + (1.0f - beta2) * gradient * gradient;
      w[j] = w[j] * shrunk - rate * m[j] / (std::sqrt(v[j]) * correction + epsilon);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    *beta1_powers[i] *= beta1;
    *beta2_powers[i] *= beta2;
  }
}
