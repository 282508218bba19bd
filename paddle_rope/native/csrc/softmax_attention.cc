// Softmax attention with RoPE, mask and dropout, in blocks of queries: nothing of the size [seq, seq] is stored.
// Backward computes the scores again (arXiv 2205.14135). Factors of products are float or bfloat16, all else float.
#include <algorithm>
#include <type_traits>

#include "kernels.h"

namespace {

constexpr float kHidden = -1e30f;            // the score of a hidden key
constexpr float kSmallestExponent = -46.0f;  // weights below 1e-20 are 0: products of smaller ones are slow
constexpr int64_t kAhead = 8, kShortestRounded = 128;  // tokens
constexpr int64_t kBlockSize = 32768, kRoundedBlockSize = 131072;  // scores of a block, which stays in the cache

struct Attention {
  int64_t batch, seq, heads, dim;
  Rotation rotation;
  const uint8_t* key_mask;     // [batch, seq], 0 at padding, or null
  const int64_t* segment_ids;  // [batch, seq], or null
  int causal;
  Dropout dropout;
  int64_t block_size;  // scores
  const float *q, *k, *v;
  float *out, *log_sums;
  const float* grad_output;  // or null
  float *grad_q, *grad_k, *grad_v;

  int64_t row_stride() const { return heads * dim; }
  int64_t block() const { return std::min(seq, std::max<int64_t>(16, block_size / seq)); }
  float factor() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }

  // offset of token i of a head in q, k, v and the output
  int64_t place(int64_t text, int64_t head, int64_t i) const { return (text * seq + i) * row_stride() + head * dim; }

  // a token of a head; fetches a later one, because the processor does not foresee such strides
  const float* token(const float* x, int64_t text, int64_t head, int64_t i) const {
    const float* row = x + place(text, head, i);
    for (int64_t f = 0; f < dim; f += 16) __builtin_prefetch(row + kAhead * row_stride() + f);
    return row;
  }

  // q or k of a head, rotated and contiguous
  void gather(const float* x, float* rows, int64_t text, int64_t head, float times) const {
    for (int64_t i = 0; i < seq; ++i) rotation.turn(token(x, text, head, i), rows + i * dim, text, i, dim, times);
  }
  void gather(const float* x, bfloat16* rows, int64_t text, int64_t head, float times) const {
    std::vector<float> turned(dim);
    for (int64_t i = 0; i < seq; ++i) {
      rotation.turn(token(x, text, head, i), turned.data(), text, i, dim, times);
      round_row(turned.data(), dim, rows + i * dim);
    }
  }

  // v or a gradient of a head as it is, or rounded to `rounded`
  Matrix operand(const float* x, float*, int64_t text, int64_t head) const {
    return {x + place(text, head, 0), row_stride()};
  }
  MatrixOf<bfloat16> operand(const float* x, bfloat16* rounded, int64_t text, int64_t head) const {
    for (int64_t i = 0; i < seq; ++i) round_row(token(x, text, head, i), dim, rounded + i * dim);
    return {rounded, dim};
  }

  void scatter(const float* x, float* out, int64_t text, int64_t head, float times) const {
    for (int64_t i = 0; i < seq; ++i)
      rotation.turn<kBack>(x + i * dim, out + place(text, head, i), text, i, dim, times);
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

// Where factors are written that come from float32 values: in place, or rounded.
inline float* place_of(float* values, float*) { return values; }
inline bfloat16* place_of(float*, bfloat16* rounded) { return rounded; }

template <typename T>
void attend(const Attention& a, int64_t text, int64_t head, float* scores, T* factors) {
  const int64_t stride = a.row_stride(), block = a.block(), size = a.seq * a.dim;
  T *turned_q = factors, *turned_k = turned_q + size, *weights = place_of(scores, turned_k + 2 * size);
  a.gather(a.q, turned_q, text, head, a.factor());
  a.gather(a.k, turned_k, text, head, 1.0f);
  const MatrixOf<T> values = a.operand(a.v, turned_k + size, text, head);
  float* out = a.out + a.place(text, head, 0);
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
      a.log_sums[number] = sees_none ? -kHidden : largest + std::log(sum);
      a.dropout.apply(number, count, s, weights + row * count, sees_none ? 0.0f : 1.0f / sum);
    }
    product(rows, a.dim, count, {weights, count}, values, out + start * stride, stride);
  }
}

template <typename T>
void differentiate(const Attention& a, int64_t text, int64_t head, float* buffer, T* factors) {
  const int64_t stride = a.row_stride(), block = a.block(), offset = a.place(text, head, 0), size = a.seq * a.dim;
  float *grad_turned_q = buffer, *grad_turned_k = grad_turned_q + size, *scores = grad_turned_k + size;
  float* grad_scores = scores + block * a.seq;
  T *turned_q = factors, *turned_k = turned_q + size, *rounded = turned_k + size;
  T *weights = place_of(scores, rounded + 2 * size), *grads = place_of(grad_scores, rounded + 2 * size + block * a.seq);
  a.gather(a.q, turned_q, text, head, a.factor());
  a.gather(a.k, turned_k, text, head, 1.0f);
  const MatrixOf<T> grad_out = a.operand(a.grad_output, rounded + size, text, head);
  MatrixOf<T> values = a.operand(a.v, rounded, text, head);
  values.transposed = true;
  std::memset(grad_turned_k, 0, size * sizeof(float));
  for (int64_t i = 0; i < a.seq; ++i) std::memset(a.grad_v + offset + i * stride, 0, a.dim * sizeof(float));
  for (int64_t start = 0; start < a.seq; start += block) {
    const int64_t rows = std::min(block, a.seq - start), count = a.causal ? start + rows : a.seq;
    const MatrixOf<T> block_q = {turned_q + start * a.dim, a.dim}, block_grad = {grad_out.row(start), grad_out.stride};
    product(rows, count, a.dim, block_q, {turned_k, a.dim, true}, scores, count);
    product(rows, count, a.dim, block_grad, values, grad_scores, count);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t i = start + row, number = (text * a.heads + head) * a.seq + i, at = offset + i * stride;
      float *s = scores + row * count, *d = grad_scores + row * count;
      T *to_weights = weights + row * count, *to_grads = grads + row * count;
      a.hide(s, text, i, count);
      const float along = dot(a.out + at, a.grad_output + at, a.dim);  // sum_j w_j d loss / d w_j
      const float log_sum = a.log_sums[number], scale = a.dropout.scale();
      if (a.dropout.threshold) {
        const RowBits bits(a.dropout.seed, number);
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          const float weight = weight_of(s[j] - log_sum);
          const float mask = Dropout::mask(bits(static_cast<uint32_t>(j)), a.dropout.threshold, scale);
          to_grads[j] = weight * (mask * d[j] - along);
          to_weights[j] = weight * mask;
        }
      } else {
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          const float weight = weight_of(s[j] - log_sum);
          to_grads[j] = weight * (d[j] - along);
          to_weights[j] = weight;
        }
      }
    }
    product(count, a.dim, rows, {weights, count, true}, block_grad, a.grad_v + offset, stride, 1.0f);
    product(rows, a.dim, count, {grads, count}, {turned_k, a.dim}, grad_turned_q + start * a.dim, a.dim);
    product(count, a.dim, rows, {grads, count, true}, block_q, grad_turned_k, a.dim, 1.0f);
  }
  a.scatter(grad_turned_q, a.grad_q, text, head, a.factor());
  a.scatter(grad_turned_k, a.grad_k, text, head, 1.0f);
}

template <typename T>
void each_head(const Attention& a) {
  const int64_t size = a.seq * a.dim, scores = a.block() * a.seq, parts = a.grad_output ? 2 : 1;
  const bool rounds = !std::is_same<T, float>::value;
#pragma omp parallel
  {
    std::vector<float> values(parts * scores + (a.grad_output ? 2 * size : 0));
    std::vector<T> factors(2 * size + (rounds ? parts * (scores + size) : 0));
#pragma omp for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; ++one)
      (a.grad_output ? differentiate<T> : attend<T>)(a, one / a.heads, one % a.heads, values.data(), factors.data());
  }
}

}  // namespace

// q, k, v, out: [batch, seq, heads * dim]; log_sums [batch, heads, seq]: log of the sums of exponentials.
// rounds: whether products have factors in bfloat16; in texts shorter than kShortestRounded that would take longer.
// Forward writes out and log_sums; with grad_output, backward reads them and writes grad_q, grad_k and grad_v.
EXPORT void softmax_attention(int64_t batch, int64_t seq, int64_t heads, int64_t dim, const float* cosine,
                              const float* sine, int64_t text_stride, int interleaved, const uint8_t* key_mask,
                              const int64_t* segment_ids, int causal, uint32_t threshold, uint64_t seed, int rounds,
                              const float* q, const float* k, const float* v, float* out, float* log_sums,
                              const float* grad_output, float* grad_q, float* grad_k, float* grad_v) {
  const Rotation rotation{cosine, sine, text_stride, interleaved};
  if (seq < kShortestRounded) rounds = 0;
  const int64_t block_size = rounds ? kRoundedBlockSize : kBlockSize;
  const Attention a{batch, seq, heads, dim, rotation, key_mask, segment_ids, causal, {threshold, seed}, block_size,
                    q, k, v, out, log_sums, grad_output, grad_q, grad_k, grad_v};
  (rounds ? each_head<bfloat16> : each_head<float>)(a);
}
