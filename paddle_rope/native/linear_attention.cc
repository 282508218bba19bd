// Linear attention with elu + 1 as feature map and RoPE in the numerator: bidirectional or causal, with or without decay,
// divided by its denominator or by its root mean square. Time and memory are linear in seq.
//
// Where every token sees all others alike there is one state, sum_j b_j c_j^T, and whatever else is made of the tokens stays
// in the cache: see Whole. Otherwise all sums of forward and backward are s_i = sum_j gamma^|i - j| (a_i . b_j) c_j: see sums().
#include <algorithm>
#include <memory>

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

  bool is_whole(int64_t head) const { return sides == kBoth && gamma(head) == 1.0f; }

  // features of `rows` tokens of a head, and the same turned; 0 where the key is padding
  void features(const float* x, int64_t text, int64_t head, bool of_keys, int64_t start, int64_t rows, float* plain,
                float* turned) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* row = x + offset(text, head) + (start + i) * stride();
      float* out = plain + i * dim;
      const float real = of_keys && key_mask && !key_mask[text * seq + start + i] ? 0.0f : 1.0f;
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) out[f] = real * feature(row[f]);
      rotation.turn(out, turned + i * dim, text, start + i, dim, 1.0f);
    }
  }

  // o / divisor, in place; the root mean square, where it divides, is written
  void divide(float* attended, float* divisor, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      float *o = attended + i * stride(), square = 0.0f;
      if (!divides) {
#pragma omp simd reduction(+ : square)
        for (int64_t f = 0; f < dim; ++f) square += o[f] * o[f];
        divisor[i] = std::sqrt(square / dim + kMinMeanSquare);
      }
      const float inverse = 1.0f / std::max(divisor[i], kMinDenominator);
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) o[f] *= inverse;
    }
  }

  // gradients of numerators [rows, dim] and of divisors [rows] (written where they are denominators)
  void undivide(const float* out, const float* d_out, const float* divisor, int64_t rows, float* d_numerator,
                float* d_divisor) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float *o = out + i * stride(), *d = d_out + i * stride();
      float along = 0.0f;
#pragma omp simd reduction(+ : along)
      for (int64_t f = 0; f < dim; ++f) along += o[f] * d[f];
      const float inverse = 1.0f / std::max(divisor[i], kMinDenominator);
      const float part = divides ? 0.0f : along / dim;
      if (divides) d_divisor[i] = divisor[i] > kMinDenominator ? -along * inverse : 0.0f;
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) d_numerator[i * dim + f] = (d[f] - part * o[f]) * inverse;
    }
  }

  // gradient of x from those of its features: d_plain + R^T d_turned, times the slope of the feature map
  void gradient(const float* plain, const float* d_plain, const float* d_turned, int64_t text, int64_t head, int64_t start,
                int64_t rows, float* d_x) const {
    std::vector<float> back(dim);
    float* d = back.data();
    for (int64_t i = 0; i < rows; ++i) {
      const float* phi = plain + i * dim;
      float* out = d_x + offset(text, head) + (start + i) * stride();
      rotation.turn_back(d_turned + i * dim, d, text, start + i, dim, 1.0f);
      if (d_plain) {
#pragma omp simd
        for (int64_t f = 0; f < dim; ++f) d[f] += d_plain[i * dim + f];
      }
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) out[f] = d[f] * (phi[f] < 1.0f ? phi[f] : 1.0f);  // exp(x) below 0, else 1
    }
  }
};

// Attention without decay to all tokens, by chunks of tokens that stay in the cache.
struct Whole {
  const LinearAttention& a;
  int64_t text, head;
  std::vector<float> plain, turned, state, key_sum, above, d_divisor, d_turned, d_plain;

  Whole(const LinearAttention& attention, int64_t text, int64_t head)
      : a(attention), text(text), head(head), plain(kChunk * a.dim), turned(kChunk * a.dim), state(a.dim * a.dim), key_sum(a.dim) {}

  template <typename Chunk>
  void each_chunk(Chunk chunk) const {
    for (int64_t start = 0; start < a.seq; start += kChunk)
      chunk(start, std::min(kChunk, a.seq - start), a.offset(text, head) + start * a.stride());
  }

  // state = sum_j turned_k_j v_j^T, key_sum = sum_j plain_k_j
  void see_keys(const float* k, const float* v) {
    each_chunk([&](int64_t start, int64_t rows, int64_t at) {
      a.features(k, text, head, true, start, rows, plain.data(), turned.data());
      product(a.dim, a.dim, rows, 1.0f, turned.data(), a.dim, true, v + at, a.stride(), false, start ? 1.0f : 0.0f,
              state.data(), a.dim);
      add_rows(plain.data(), nullptr, rows, key_sum.data());
    });
  }

  // total += sum_i factor_i row_i
  void add_rows(const float* rows_of, const float* factors, int64_t rows, float* total) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float factor = factors ? factors[i] : 1.0f, *row = rows_of + i * a.dim;
#pragma omp simd
      for (int64_t f = 0; f < a.dim; ++f) total[f] += factor * row[f];
    }
  }

  void attend(const float* q, const float* k, const float* v, float* out, float* divisor) {
    see_keys(k, v);
    each_chunk([&](int64_t start, int64_t rows, int64_t at) {
      a.features(q, text, head, false, start, rows, plain.data(), turned.data());
      product(rows, a.dim, a.dim, 1.0f, turned.data(), a.dim, false, state.data(), a.dim, false, 0.0f, out + at, a.stride());
      for (int64_t i = 0; a.divides && i < rows; ++i) {
        const float* row = plain.data() + i * a.dim;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t f = 0; f < a.dim; ++f) sum += row[f] * key_sum[f];
        divisor[start + i] = sum;
      }
      a.divide(out + at, divisor + start, rows);
    });
  }

  void differentiate(const float* q, const float* k, const float* v, const float* out, const float* divisor, const float* d_out,
                     float* d_q, float* d_k, float* d_v) {
    see_keys(k, v);
    for (auto* buffer : {&above, &d_turned, &d_plain}) buffer->resize(kChunk * a.dim);
    d_divisor.resize(kChunk);
    std::vector<float> d_state(a.dim * a.dim), d_key_sum(a.dim);
    const float* extra = a.divides ? d_plain.data() : nullptr;
    each_chunk([&](int64_t start, int64_t rows, int64_t at) {
      a.features(q, text, head, false, start, rows, plain.data(), turned.data());
      a.undivide(out + at, d_out + at, divisor + start, rows, above.data(), d_divisor.data());
      product(a.dim, a.dim, rows, 1.0f, turned.data(), a.dim, true, above.data(), a.dim, false, start ? 1.0f : 0.0f,
              d_state.data(), a.dim);
      product(rows, a.dim, a.dim, 1.0f, above.data(), a.dim, false, state.data(), a.dim, true, 0.0f, d_turned.data(), a.dim);
      if (extra) {
        add_rows(plain.data(), d_divisor.data(), rows, d_key_sum.data());
        for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
          for (int64_t f = 0; f < a.dim; ++f) d_plain[i * a.dim + f] = d_divisor[i] * key_sum[f];
        }
      }
      a.gradient(plain.data(), extra, d_turned.data(), text, head, start, rows, d_q);
    });
    for (int64_t i = 0; extra && i < kChunk; ++i) std::copy(d_key_sum.begin(), d_key_sum.end(), d_plain.begin() + i * a.dim);
    each_chunk([&](int64_t start, int64_t rows, int64_t at) {
      a.features(k, text, head, true, start, rows, plain.data(), turned.data());
      product(rows, a.dim, a.dim, 1.0f, turned.data(), a.dim, false, d_state.data(), a.dim, false, 0.0f, d_v + at, a.stride());
      product(rows, a.dim, a.dim, 1.0f, v + at, a.stride(), false, d_state.data(), a.dim, true, 0.0f, d_turned.data(), a.dim);
      a.gradient(plain.data(), extra, d_turned.data(), text, head, start, rows, d_k);  // 0 at padding: features are 0 there
    });
  }
};

// Attention with decay, or causal: features of a head side by side.
struct Decaying {
  const LinearAttention& a;
  std::vector<float> plain_q, plain_k, turned_q, turned_k, ones, scratch;

  explicit Decaying(const LinearAttention& attention)
      : a(attention), plain_q(a.seq * a.dim), plain_k(a.seq * a.dim), turned_q(a.seq * a.dim), turned_k(a.seq * a.dim),
        ones(a.seq, 1.0f) {}

  static Matrix side_by_side(const std::vector<float>& x, int64_t width) { return {x.data(), width, width}; }

  void compute(int64_t text, int64_t head, const float* q, const float* k) {
    a.features(q, text, head, false, 0, a.seq, plain_q.data(), turned_q.data());
    a.features(k, text, head, true, 0, a.seq, plain_k.data(), turned_k.data());
  }

  void attend(int64_t text, int64_t head, const float* q, const float* k, const float* v, float* out, float* divisor) {
    const int64_t offset = a.offset(text, head);
    const float gamma = a.gamma(head);
    compute(text, head, q, k);
    sums(side_by_side(turned_q, a.dim), side_by_side(turned_k, a.dim), {v + offset, a.dim, a.stride()}, a.seq, gamma, a.sides,
         out + offset, a.stride(), scratch);
    if (a.divides)
      sums(side_by_side(plain_q, a.dim), side_by_side(plain_k, a.dim), side_by_side(ones, 1), a.seq, gamma, a.sides, divisor, 1,
           scratch);
    a.divide(out + offset, divisor, a.seq);
  }

  void differentiate(int64_t text, int64_t head, const float* q, const float* k, const float* v, const float* out,
                     const float* divisor, const float* d_out, float* d_q, float* d_k, float* d_v) {
    const int64_t stride = a.stride(), offset = a.offset(text, head), size = a.seq * a.dim;
    const float gamma = a.gamma(head);
    const Sides back = reversed(a.sides);
    compute(text, head, q, k);
    std::vector<float> d_numerator(size), d_divisor(a.seq), d_turned(size), d_plain(a.divides ? size : 0);
    a.undivide(out + offset, d_out + offset, divisor, a.seq, d_numerator.data(), d_divisor.data());
    const Matrix values{v + offset, a.dim, stride}, above = side_by_side(d_numerator, a.dim), below = side_by_side(d_divisor, 1);
    const Matrix rows_q = side_by_side(turned_q, a.dim), rows_k = side_by_side(turned_k, a.dim), one = side_by_side(ones, 1);
    float* extra = a.divides ? d_plain.data() : nullptr;
    sums(rows_k, rows_q, above, a.seq, gamma, back, d_v + offset, stride, scratch);
    sums(above, values, rows_k, a.seq, gamma, a.sides, d_turned.data(), a.dim, scratch);
    if (extra) sums(below, one, side_by_side(plain_k, a.dim), a.seq, gamma, a.sides, extra, a.dim, scratch);
    a.gradient(plain_q.data(), extra, d_turned.data(), text, head, 0, a.seq, d_q);
    sums(values, above, rows_q, a.seq, gamma, back, d_turned.data(), a.dim, scratch);
    if (extra) sums(one, below, side_by_side(plain_q, a.dim), a.seq, gamma, back, extra, a.dim, scratch);
    a.gradient(plain_k.data(), extra, d_turned.data(), text, head, 0, a.seq, d_k);  // 0 at padding, as the features there
  }
};

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
    std::unique_ptr<Decaying> decaying;
#pragma omp for schedule(static)
    for (int64_t one = 0; one < batch * heads; ++one) {
      const int64_t text = one / heads, head = one % heads;
      float* divisor = divisors + one * seq;
      if (a.is_whole(head)) {
        Whole(a, text, head).attend(q, k, v, out, divisor);
      } else {
        if (!decaying) decaying.reset(new Decaying(a));
        decaying->attend(text, head, q, k, v, out, divisor);
      }
    }
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
    std::unique_ptr<Decaying> decaying;
#pragma omp for schedule(static)
    for (int64_t one = 0; one < batch * heads; ++one) {
      const int64_t text = one / heads, head = one % heads;
      const float* divisor = divisors + one * seq;
      if (a.is_whole(head)) {
        Whole(a, text, head).differentiate(q, k, v, out, divisor, d_out, d_q, d_k, d_v);
      } else {
        if (!decaying) decaying.reset(new Decaying(a));
        decaying->differentiate(text, head, q, k, v, out, divisor, d_out, d_q, d_k, d_v);
      }
    }
  }
}
