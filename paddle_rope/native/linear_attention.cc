// Linear attention with elu + 1 as feature map and RoPE in the numerator: bidirectional or causal, with or without decay,
// divided by its denominator or by its root mean square. Time and memory are linear in seq.
//
// All sums of forward and backward are of one form, s_i = sum_j gamma^|i - j| (a_i . b_j) c_j; see sums().
#include <algorithm>

#include "rotation.h"

namespace {

constexpr int64_t kChunk = 128;
constexpr float kSmallestPower = 1e-30f;  // of gamma; products of smaller ones are slow, and lost in float32 sums
constexpr float kMinDenominator = 1e-30f;   // as in attention/linear.py
constexpr float kMinMeanSquare = 1e-12f;

struct Matrix {  // rows that stand `stride` apart
  const float* data;
  int64_t width, stride;
  const float* row(int64_t i) const { return data + i * stride; }
};

enum Sides { kLeft = 1, kRight = 2, kBoth = 3 };  // j <= i, j >= i, all

inline Sides reversed(Sides sides) { return sides == kBoth ? kBoth : (sides == kLeft ? kRight : kLeft); }

// The rows of a chunk, row i times powers[first + step * i].
void scaled_rows(const Matrix& x, int64_t start, int64_t rows, const float* powers, int64_t first, int64_t step, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *row = x.row(start + i), power = powers[first + step * i];
#pragma omp simd
    for (int64_t f = 0; f < x.width; ++f) out[i * x.width + f] = power * row[f];
  }
}

// s_i = sum_j gamma^|i - j| (a_i . b_j) c_j over the j of `sides`, i itself always. Within a chunk the weights are formed;
// what is outside enters through the state sum_j gamma^.. b_j c_j^T, which runs from the left, and from the right.
void sums(const Matrix& a, const Matrix& b, const Matrix& c, int64_t seq, float gamma, Sides sides, float* out,
          int64_t out_stride, std::vector<float>& scratch) {
  const int64_t features = a.width, values = c.width;
  scratch.resize(features * values + kChunk * kChunk + 2 * kChunk * features);
  float *state = scratch.data(), *weights = state + features * values, *rows_a = weights + kChunk * kChunk;
  float* rows_b = rows_a + kChunk * features;
  if (sides == kBoth && gamma == 1.0f) {
    for (int64_t start = 0; start < seq; start += kChunk) {  // a product of the whole would pack more than the cache holds
      const int64_t rows = std::min(kChunk, seq - start);
      product(features, values, rows, 1.0f, b.row(start), b.stride, true, c.row(start), c.stride, false, start ? 1.0f : 0.0f,
              state, values);
    }
    for (int64_t start = 0; start < seq; start += kChunk)
      product(std::min(kChunk, seq - start), values, features, 1.0f, a.row(start), a.stride, false, state, values, false,
              0.0f, out + start * out_stride, out_stride);
    return;
  }
  float powers[kChunk + 1];
  powers[0] = 1.0f;
  for (int64_t i = 0; i < kChunk; ++i) powers[i + 1] = powers[i] < kSmallestPower ? 0.0f : powers[i] * gamma;
  const int64_t chunks = (seq + kChunk - 1) / kChunk;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t start = chunk * kChunk, rows = std::min(kChunk, seq - start);
    product(rows, rows, features, 1.0f, a.row(start), a.stride, false, b.row(start), b.stride, true, 0.0f, weights, rows);
    for (int64_t i = 0; i < rows; ++i) {
      float* w = weights + i * rows;
      for (int64_t j = 0; j < i; ++j) w[j] *= sides & kLeft ? powers[i - j] : 0.0f;
      for (int64_t j = i + 1; j < rows; ++j) w[j] *= sides & kRight ? powers[j - i] : 0.0f;
    }
    product(rows, values, rows, 1.0f, weights, rows, false, c.row(start), c.stride, false, 0.0f, out + start * out_stride,
            out_stride);
  }
  for (const Sides side : {kLeft, kRight}) {
    if (!(sides & side)) continue;
    for (int64_t number = 0; number < chunks; ++number) {
      const int64_t chunk = side == kLeft ? number : chunks - 1 - number;
      const int64_t start = chunk * kChunk, rows = std::min(kChunk, seq - start);
      if (number) {
        scaled_rows(a, start, rows, powers, side == kLeft ? 1 : rows, side == kLeft ? 1 : -1, rows_a);
        product(rows, values, features, 1.0f, rows_a, features, false, state, values, false, 1.0f, out + start * out_stride,
                out_stride);
      }
      scaled_rows(b, start, rows, powers, side == kLeft ? rows - 1 : 0, side == kLeft ? -1 : 1, rows_b);
      if (number)
        for (int64_t i = 0; i < features * values; ++i) state[i] *= powers[rows];
      product(features, values, rows, 1.0f, rows_b, features, true, c.row(start), c.stride, false, number ? 1.0f : 0.0f, state,
              values);
    }
  }
}

inline float feature(float x) { return x >= 0.0f ? x + 1.0f : exponential(x); }

struct LinearAttention {
  int64_t batch, seq, heads, dim;
  Rotation rotation;
  const uint8_t* key_mask;  // [batch, seq], 0 at padding, or null
  Sides sides;
  const float* gammas;  // [heads], or null for 1
  int divides;          // by the denominator, not by the root mean square

  int64_t stride() const { return heads * dim; }
  int64_t offset(int64_t text, int64_t head) const { return text * seq * stride() + head * dim; }
  float gamma(int64_t head) const { return gammas ? gammas[head] : 1.0f; }

  // features of a head, and the same turned; 0 where the key is padding
  void features(const float* x, int64_t text, int64_t head, bool of_keys, float* plain, float* turned) const {
    for (int64_t i = 0; i < seq; ++i) {
      const float* row = x + offset(text, head) + i * stride();
      float* out = plain + i * dim;
      const float real = of_keys && key_mask && !key_mask[text * seq + i] ? 0.0f : 1.0f;
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) out[f] = real * feature(row[f]);
      rotation.turn(out, turned + i * dim, text, i, dim, 1.0f);
    }
  }

  // gradient of x from those of its features: d_plain + R^T d_turned, times the slope of the feature map
  void gradient(const float* plain, const float* d_plain, const float* d_turned, int64_t text, int64_t head, float* d_x) const {
    std::vector<float> back(dim);
    float* d = back.data();
    for (int64_t i = 0; i < seq; ++i) {
      const float* phi = plain + i * dim;
      float* out = d_x + offset(text, head) + i * stride();
      rotation.turn_back(d_turned + i * dim, d, text, i, dim, 1.0f);
      if (d_plain) {
#pragma omp simd
        for (int64_t f = 0; f < dim; ++f) d[f] += d_plain[i * dim + f];
      }
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) out[f] = d[f] * (phi[f] < 1.0f ? phi[f] : 1.0f);  // exp(x) below 0, else 1
    }
  }
};

struct Workspace {
  std::vector<float> plain_q, plain_k, turned_q, turned_k, ones, scratch;

  explicit Workspace(const LinearAttention& a)
      : plain_q(a.seq * a.dim), plain_k(a.seq * a.dim), turned_q(a.seq * a.dim), turned_k(a.seq * a.dim), ones(a.seq, 1.0f) {}

  void compute(const LinearAttention& a, int64_t text, int64_t head, const float* q, const float* k) {
    a.features(q, text, head, false, plain_q.data(), turned_q.data());
    a.features(k, text, head, true, plain_k.data(), turned_k.data());
  }
};

Matrix side_by_side(const std::vector<float>& x, int64_t width) { return {x.data(), width, width}; }

void attend(const LinearAttention& a, int64_t text, int64_t head, const float* q, const float* k, const float* v, float* out,
            float* divisors, Workspace& work) {
  const int64_t stride = a.stride();
  float *attended = out + a.offset(text, head), *divisor = divisors + (text * a.heads + head) * a.seq;
  work.compute(a, text, head, q, k);
  const Matrix values{v + a.offset(text, head), a.dim, stride};
  sums(side_by_side(work.turned_q, a.dim), side_by_side(work.turned_k, a.dim), values, a.seq, a.gamma(head), a.sides, attended,
       stride, work.scratch);
  if (a.divides)
    sums(side_by_side(work.plain_q, a.dim), side_by_side(work.plain_k, a.dim), side_by_side(work.ones, 1), a.seq, a.gamma(head),
         a.sides, divisor, 1, work.scratch);
  for (int64_t i = 0; i < a.seq; ++i) {
    float *o = attended + i * stride, square = 0.0f;
    if (!a.divides) {
#pragma omp simd reduction(+ : square)
      for (int64_t f = 0; f < a.dim; ++f) square += o[f] * o[f];
      divisor[i] = std::sqrt(square / a.dim + kMinMeanSquare);
    }
    const float inverse = 1.0f / std::max(divisor[i], kMinDenominator);
#pragma omp simd
    for (int64_t f = 0; f < a.dim; ++f) o[f] *= inverse;
  }
}

void differentiate(const LinearAttention& a, int64_t text, int64_t head, const float* q, const float* k, const float* v,
                   const float* out, const float* divisors, const float* d_out, float* d_q, float* d_k, float* d_v,
                   Workspace& work) {
  const int64_t stride = a.stride(), offset = a.offset(text, head), size = a.seq * a.dim;
  const float gamma = a.gamma(head);
  const Sides back = reversed(a.sides);
  const float* divisor = divisors + (text * a.heads + head) * a.seq;
  work.compute(a, text, head, q, k);
  std::vector<float> d_numerator(size), d_divisor(a.divides ? a.seq : 0), d_turned(size), d_plain(a.divides ? size : 0);
  for (int64_t i = 0; i < a.seq; ++i) {
    const float *o = out + offset + i * stride, *d = d_out + offset + i * stride;
    float along = 0.0f;
#pragma omp simd reduction(+ : along)
    for (int64_t f = 0; f < a.dim; ++f) along += o[f] * d[f];
    const float inverse = 1.0f / std::max(divisor[i], kMinDenominator);
    const float part = a.divides ? 0.0f : along / a.dim;
    if (a.divides) d_divisor[i] = divisor[i] > kMinDenominator ? -along * inverse : 0.0f;
#pragma omp simd
    for (int64_t f = 0; f < a.dim; ++f) d_numerator[i * a.dim + f] = (d[f] - part * o[f]) * inverse;
  }
  const Matrix values{v + offset, a.dim, stride}, above = side_by_side(d_numerator, a.dim);
  const Matrix turned_q = side_by_side(work.turned_q, a.dim), turned_k = side_by_side(work.turned_k, a.dim);
  const Matrix below = side_by_side(d_divisor, 1), ones = side_by_side(work.ones, 1);
  const float* extra = a.divides ? d_plain.data() : nullptr;
  sums(turned_k, turned_q, above, a.seq, gamma, back, d_v + offset, stride, work.scratch);
  sums(above, values, turned_k, a.seq, gamma, a.sides, d_turned.data(), a.dim, work.scratch);
  if (a.divides)
    sums(below, ones, side_by_side(work.plain_k, a.dim), a.seq, gamma, a.sides, d_plain.data(), a.dim, work.scratch);
  a.gradient(work.plain_q.data(), extra, d_turned.data(), text, head, d_q);
  sums(values, above, turned_q, a.seq, gamma, back, d_turned.data(), a.dim, work.scratch);
  if (a.divides) sums(ones, below, side_by_side(work.plain_q, a.dim), a.seq, gamma, back, d_plain.data(), a.dim, work.scratch);
  a.gradient(work.plain_k.data(), extra, d_turned.data(), text, head, d_k);  // 0 at padding, where the features are 0
}

}  // namespace

// q, k, v, out: [batch, seq, heads * dim]; divisors [batch, heads, seq].
EXPORT void linear_attention_forward(int64_t batch, int64_t seq, int64_t heads, int64_t dim, const float* cosine,
                                     const float* sine, int64_t text_stride, int interleaved, const uint8_t* key_mask,
                                     int causal, const float* gammas, int divides, const float* q, const float* k,
                                     const float* v, float* out, float* divisors) {
  const LinearAttention a{batch,    seq,    heads,  dim, {cosine, sine, text_stride, interleaved}, key_mask, causal ? kLeft : kBoth,
                          gammas, divides};
#pragma omp parallel
  {
    Workspace work(a);
#pragma omp for schedule(static)
    for (int64_t one = 0; one < batch * heads; ++one) attend(a, one / heads, one % heads, q, k, v, out, divisors, work);
  }
}

EXPORT void linear_attention_backward(int64_t batch, int64_t seq, int64_t heads, int64_t dim, const float* cosine,
                                      const float* sine, int64_t text_stride, int interleaved, const uint8_t* key_mask,
                                      int causal, const float* gammas, int divides, const float* q, const float* k,
                                      const float* v, const float* out, const float* divisors, const float* d_out, float* d_q,
                                      float* d_k, float* d_v) {
  const LinearAttention a{batch,    seq,    heads,  dim, {cosine, sine, text_stride, interleaved}, key_mask, causal ? kLeft : kBoth,
                          gammas, divides};
#pragma omp parallel
  {
    Workspace work(a);
#pragma omp for schedule(static)
    for (int64_t one = 0; one < batch * heads; ++one)
      differentiate(a, one / heads, one % heads, q, k, v, out, divisors, d_out, d_q, d_k, d_v, work);
  }
}
