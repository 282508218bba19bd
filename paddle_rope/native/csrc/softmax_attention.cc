// Softmax attention with RoPE, mask and dropout, in blocks of queries: nothing of the size [seq, seq] is stored.
// Backward computes the scores again (arXiv 2205.14135).
#include <algorithm>

#include "kernels.h"

namespace {

constexpr float kHidden = -1e30f;            // the score of a hidden key
constexpr float kSmallestExponent = -46.0f;  // weights below 1e-20 are 0: products of smaller ones are slow
constexpr int64_t kBlockSize = 32768;        // scores of a block, so that it stays in the cache

struct Attention {
  int64_t batch, seq, heads, dim;
  Rotation rotation;
  const uint8_t* key_mask;     // [batch, seq], 0 at padding, or null
  const int64_t* segment_ids;  // [batch, seq], or null
  int causal;
  Dropout dropout;

  int64_t row_stride() const { return heads * dim; }
  int64_t block() const { return std::min(seq, std::max<int64_t>(16, kBlockSize / seq)); }
  float factor() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }

  // q or k of a head, rotated and contiguous
  void gather(const float* x, float* out, int64_t text, int64_t head, float times) const {
    for (int64_t i = 0; i < seq; ++i)
      rotation.turn(x + (text * seq + i) * row_stride() + head * dim, out + i * dim, text, i, dim, times);
  }

  void scatter(const float* x, float* out, int64_t text, int64_t head, float times) const {
    for (int64_t i = 0; i < seq; ++i)
      rotation.turn<kBack>(x + i * dim, out + (text * seq + i) * row_stride() + head * dim, text, i, dim, times);
  }

  // sets the scores of the keys, among the first `count`, that are hidden from query i to kHidden
  void hide(float* scores, int64_t text, int64_t i, int64_t count) const {
    if (key_mask) {
      const uint8_t* real = key_mask + text * seq;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) scores[j] = real[j] ? scores[j] : kHidden;
    }
    if (segment_ids) {
      const int64_t *ids = segment_ids + text * seq, own = ids[i];
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) scores[j] = ids[j] == own ? scores[j] : kHidden;
    }
    if (causal)
      for (int64_t j = i + 1; j < count; ++j) scores[j] = kHidden;
  }
};

inline float weight_of(float x) { return x < kSmallestExponent ? 0.0f : exponential(x); }

void attend(const Attention& a, int64_t text, int64_t head, const float* q, const float* k, const float* v, float* out,
            float* log_sums, float* buffer) {
  const int64_t stride = a.row_stride(), block = a.block(), offset = text * a.seq * stride + head * a.dim;
  float *turned_q = buffer, *turned_k = turned_q + a.seq * a.dim, *scores = turned_k + a.seq * a.dim;
  a.gather(q, turned_q, text, head, a.factor());
  a.gather(k, turned_k, text, head, 1.0f);
  for (int64_t start = 0; start < a.seq; start += block) {
    const int64_t rows = std::min(block, a.seq - start), count = a.causal ? start + rows : a.seq;
    product(rows, count, a.dim, {turned_q + start * a.dim, a.dim}, {turned_k, a.dim, true}, scores, count);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = start + row;
      float* s = scores + row * count;
      a.hide(s, text, i, count);
      float largest = kHidden, sum = 0.0f;
#pragma omp simd reduction(max : largest)
      for (int64_t j = 0; j < count; ++j) largest = s[j] > largest ? s[j] : largest;
      const bool sees_none = largest <= kHidden;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < count; ++j) {
        s[j] = weight_of(s[j] - largest);
        sum += s[j];
      }
      const int64_t number = (text * a.heads + head) * a.seq + i;
      log_sums[number] = sees_none ? -kHidden : largest + std::log(sum);
      a.dropout.apply(number, count, s, s, sees_none ? 0.0f : 1.0f / sum);
    }
    product(rows, a.dim, count, {scores, count}, {v + offset, stride}, out + offset + start * stride, stride);
  }
}

void differentiate(const Attention& a, int64_t text, int64_t head, const float* q, const float* k, const float* v,
                   const float* out, const float* log_sums, const float* grad_output, float* grad_q, float* grad_k,
                   float* grad_v, float* buffer) {
  const int64_t stride = a.row_stride(), block = a.block(), offset = text * a.seq * stride + head * a.dim;
  const int64_t size = a.seq * a.dim;
  float *turned_q = buffer, *turned_k = turned_q + size, *grad_turned_q = turned_k + size,
        *grad_turned_k = grad_turned_q + size;
  float *weights = grad_turned_k + size, *grad_scores = weights + block * a.seq;
  a.gather(q, turned_q, text, head, a.factor());
  a.gather(k, turned_k, text, head, 1.0f);
  std::memset(grad_turned_k, 0, size * sizeof(float));
  for (int64_t i = 0; i < a.seq; ++i) std::memset(grad_v + offset + i * stride, 0, a.dim * sizeof(float));
  for (int64_t start = 0; start < a.seq; start += block) {
    const int64_t rows = std::min(block, a.seq - start), count = a.causal ? start + rows : a.seq;
    const float *block_q = turned_q + start * a.dim, *block_grad = grad_output + offset + start * stride;
    product(rows, count, a.dim, {block_q, a.dim}, {turned_k, a.dim, true}, weights, count);
    product(rows, count, a.dim, {block_grad, stride}, {v + offset, stride, true}, grad_scores, count);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = start + row, number = (text * a.heads + head) * a.seq + i;
      float *w = weights + row * count, *d = grad_scores + row * count;
      a.hide(w, text, i, count);
      // sum_j w_j d loss / d w_j
      const float along = dot(out + offset + i * stride, grad_output + offset + i * stride, a.dim);
      const float log_sum = log_sums[number], scale = a.dropout.scale();
      if (a.dropout.threshold) {
        const RowBits bits(a.dropout.seed, number);
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          const float weight = weight_of(w[j] - log_sum);
          const float mask = Dropout::mask(bits(static_cast<uint32_t>(j)), a.dropout.threshold, scale);
          d[j] = weight * (mask * d[j] - along);
          w[j] = weight * mask;
        }
      } else {
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          w[j] = weight_of(w[j] - log_sum);
          d[j] = w[j] * (d[j] - along);
        }
      }
    }
    product(count, a.dim, rows, {weights, count, true}, {block_grad, stride}, grad_v + offset, stride, 1.0f);
    product(rows, a.dim, count, {grad_scores, count}, {turned_k, a.dim}, grad_turned_q + start * a.dim, a.dim);
    product(count, a.dim, rows, {grad_scores, count, true}, {block_q, a.dim}, grad_turned_k, a.dim, 1.0f);
  }
  a.scatter(grad_turned_q, grad_q, text, head, a.factor());
  a.scatter(grad_turned_k, grad_k, text, head, 1.0f);
}

}  // namespace

// q, k, v, out: [batch, seq, heads * dim]; log_sums [batch, heads, seq]: log of the sums of exponentials.
// Forward writes out and log_sums; with grad_output, backward reads them and writes grad_q, grad_k and grad_v.
EXPORT void softmax_attention(int64_t batch, int64_t seq, int64_t heads, int64_t dim, const float* cosine,
                              const float* sine, int64_t text_stride, int interleaved, const uint8_t* key_mask,
                              const int64_t* segment_ids, int causal, uint32_t threshold, uint64_t seed, const float* q,
                              const float* k, const float* v, float* out, float* log_sums, const float* grad_output,
                              float* grad_q, float* grad_k, float* grad_v) {
  const Rotation rotation{cosine, sine, text_stride, interleaved};
  const Dropout dropout{threshold, seed};
  const Attention a{batch, seq, heads, dim, rotation, key_mask, segment_ids, causal, dropout};
  const int64_t buffers = grad_output ? 2 : 1;
#pragma omp parallel
  {
    std::vector<float> buffer(buffers * (2 * seq * dim + a.block() * seq));
#pragma omp for schedule(static)
    for (int64_t one = 0; one < batch * heads; ++one) {
      const int64_t text = one / heads, head = one % heads;
      if (grad_output)
        differentiate(a, text, head, q, k, v, out, log_sums, grad_output, grad_q, grad_k, grad_v, buffer.data());
      else
        attend(a, text, head, q, k, v, out, log_sums, buffer.data());
    }
  }
}
