// Linear attention with elu + 1 as feature map and RoPE in the numerator: bidirectional or causal, with or without
// decay, divided by its denominator or by its root mean square. Time and memory are linear in seq: with one state where
// every token attends to all others alike (see Whole), otherwise by sums().
#include <algorithm>
#include <memory>

#include "kernels.h"

namespace {

constexpr int64_t kChunk = 128;
constexpr int64_t kDecayChunk = 64;
constexpr int64_t kHeadsTogether = 4;     // without decay
constexpr float kSmallestPower = 1e-30f;  // of gamma; smaller ones become 0, since their products are slow

enum Sides { kLeft = 1, kRight = 2, kBoth = 3 };  // j <= i, j >= i, all

inline Sides reversed(Sides sides) { return sides == kBoth ? kBoth : (sides == kLeft ? kRight : kLeft); }

// The rows of a chunk, which are contiguous: row i times powers[first + step * i].
void scaled_rows(const Matrix& x, int64_t start, int64_t rows, const float* powers, int64_t first, int64_t step,
                 float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *row = x.row(start + i), power = powers[first + step * i];
#pragma omp simd
    for (int64_t f = 0; f < x.stride; ++f) out[i * x.stride + f] = power * row[f];
  }
}

// s_i = sum_j gamma^|i - j| (a_i . b_j) c_j over the j of `sides`, i itself always. Within a chunk the weights are
// computed; tokens outside contribute through the state sum_j gamma^.. b_j c_j^T, carried from the left and the right.
void sums(const Matrix& a, const Matrix& b, const Matrix& c, int64_t seq, float gamma, Sides sides, float* out,
          std::vector<float>& scratch) {
  const int64_t features = a.stride, values = c.stride;
  scratch.resize(features * values + kDecayChunk * kDecayChunk + 2 * kDecayChunk * features);
  float *state = scratch.data(), *weights = state + features * values, *rows_a = weights + kDecayChunk * kDecayChunk;
  float* rows_b = rows_a + kDecayChunk * features;
  float powers[kDecayChunk + 1];
  powers[0] = 1.0f;
  for (int64_t i = 0; i < kDecayChunk; ++i) powers[i + 1] = powers[i] < kSmallestPower ? 0.0f : powers[i] * gamma;
  const int64_t chunks = (seq + kDecayChunk - 1) / kDecayChunk;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t start = chunk * kDecayChunk, rows = std::min(kDecayChunk, seq - start);
    product(rows, rows, features, {a.row(start), features}, {b.row(start), features, true}, weights, rows);
    for (int64_t i = 0; i < rows; ++i) {
      float* w = weights + i * rows;
      for (int64_t j = 0; j < i; ++j) w[j] *= sides & kLeft ? powers[i - j] : 0.0f;
      for (int64_t j = i + 1; j < rows; ++j) w[j] *= sides & kRight ? powers[j - i] : 0.0f;
    }
    product(rows, values, rows, {weights, rows}, {c.row(start), values}, out + start * values, values);
  }
  for (const Sides side : {kLeft, kRight}) {
    if (!(sides & side)) continue;
    for (int64_t number = 0; number < chunks; ++number) {
      const int64_t chunk = side == kLeft ? number : chunks - 1 - number;
      const int64_t start = chunk * kDecayChunk, rows = std::min(kDecayChunk, seq - start);
      if (number) {
        scaled_rows(a, start, rows, powers, side == kLeft ? 1 : rows, side == kLeft ? 1 : -1, rows_a);
        product(rows, values, features, {rows_a, features}, {state, values}, out + start * values, values, 1.0f);
      }
      scaled_rows(b, start, rows, powers, side == kLeft ? rows - 1 : 0, side == kLeft ? -1 : 1, rows_b);
      if (number)
        for (int64_t i = 0; i < features * values; ++i) state[i] *= powers[rows];
      product(features, values, rows, {rows_b, features, true}, {c.row(start), values}, state, values,
              number ? 1.0f : 0.0f);
    }
  }
}

inline float total(const float* row, int64_t size) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t f = 0; f < size; ++f) sum += row[f];
  return sum;
}

inline float feature(float x) { return x >= 0.0f ? x + 1.0f : exponential(x); }

struct LinearAttention {
  int64_t batch, seq, heads, dim;
  Rotation rotation;
  const uint8_t* key_mask;  // [batch, seq], 0 at padding, or null
  Sides sides;
  const float* gammas;  // [heads], or null for 1
  int divides;          // 1: by the denominator, 0: by the root mean square
  float min_denominator, min_overlap, min_mean_square;

  int64_t stride() const { return heads * dim; }
  float gamma(int64_t head) const { return gammas ? gammas[head] : 1.0f; }

  // The denominator of a rotated numerator has a lower bound. A divisor that equals the bound is stored as negative.
  bool bounds() const { return divides && rotation.cosine; }

  // The features of a query, or their gradients, where the bound applies: min_overlap times the mean of all.
  void spread(float* row) const { std::fill_n(row, dim, min_overlap / dim * total(row, dim)); }

  // What is kept of a head for backward: its state [dim, dim] and the sum of its keys [dim].
  int64_t kept_size() const { return (dim + 1) * dim; }
  float* state(float* kept, int64_t head) const { return kept + head * kept_size(); }
  float* key_sum(float* kept, int64_t head) const { return state(kept, head) + dim * dim; }

  bool is_whole(int64_t head) const { return sides == kBoth && gamma(head) == 1.0f; }

  // offset of token i of a head in q, k, v and the output
  int64_t place(int64_t text, int64_t head, int64_t i) const { return (text * seq + i) * stride() + head * dim; }

  // features of a row of q or k, plain and rotated; 0 for a key that is padding
  void feature_row(const float* row, int64_t text, int64_t i, bool of_keys, float* plain, float* turned) const {
    const float real = of_keys && key_mask && !key_mask[text * seq + i] ? 0.0f : 1.0f;
#pragma omp simd
    for (int64_t f = 0; f < dim; ++f) plain[f] = real * feature(row[f]);
    rotation.turn(plain, turned, text, i, dim, 1.0f);
  }

  // out = numerator / divisor; out may be numerator. A root mean square is computed here and written to divisor
  void divide_row(const float* numerator, float& divisor, float* out) const {
    if (!divides) divisor = std::sqrt(dot(numerator, numerator, dim) / dim + min_mean_square);
    const float inverse = 1.0f / std::max(std::abs(divisor), min_denominator);
#pragma omp simd
    for (int64_t f = 0; f < dim; ++f) out[f] = inverse * numerator[f];
  }

  // gradients of a numerator and of its divisor (written only if it is a denominator)
  void undivide_row(const float* out, const float* grad_output, float divisor, float* grad_numerator,
                    float& grad_divisor) const {
    const float along = dot(out, grad_output, dim), inverse = 1.0f / std::max(std::abs(divisor), min_denominator);
    const float part = divides ? 0.0f : along / dim;
    if (divides) grad_divisor = std::abs(divisor) > min_denominator ? -along * inverse : 0.0f;
#pragma omp simd
    for (int64_t f = 0; f < dim; ++f) grad_numerator[f] = (grad_output[f] - part * out[f]) * inverse;
  }

  // gradient of a row of q or k from gradients of its features: (grad_plain + R^T grad_turned) * slope of the feature
  // map; grad_plain may be null
  void gradient_row(const float* phi, const float* grad_plain, const float* grad_turned, int64_t text, int64_t i,
                    float* back, float* out) const {
    rotation.turn<kBack>(grad_turned, back, text, i, dim, 1.0f);
    if (grad_plain) {
#pragma omp simd
      for (int64_t f = 0; f < dim; ++f) back[f] += grad_plain[f];
    }
#pragma omp simd
    for (int64_t f = 0; f < dim; ++f) out[f] = back[f] * (phi[f] < 1.0f ? phi[f] : 1.0f);  // exp(x) below 0, else 1
  }
};

// Attention without decay to all tokens, for neighboring heads, whose features are adjacent in the tensors. All values
// computed from a chunk of tokens stay in the cache.
struct Whole {
  const LinearAttention& a;
  int64_t text, first, heads;
  int64_t size;  // of a head's part of a buffer
  std::vector<float> plain, turned, numerators;

  Whole(const LinearAttention& attention, int64_t text, int64_t first, int64_t heads)
      : a(attention), text(text), first(first), heads(heads), size(kChunk * a.dim) {
    for (auto* buffer : {&plain, &turned, &numerators}) buffer->resize(heads * size);
  }

  float* of(std::vector<float>& buffer, int64_t head, int64_t row = 0) const {
    return buffer.data() + head * size + row * a.dim;
  }
  float* matrix(std::vector<float>& all, int64_t head) const { return all.data() + head * a.dim * a.dim; }

  template <typename Chunk>
  void each_chunk(Chunk chunk) const {
    for (int64_t start = 0; start < a.seq; start += kChunk) chunk(start, std::min(kChunk, a.seq - start));
  }

  // calls row(head, i in the chunk, offset of the token), head by head within a token
  template <typename Row>
  void each_row(int64_t start, int64_t rows, Row row) const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t head = 0; head < heads; ++head) row(head, i, a.place(text, first + head, start + i));
  }

  void features(const float* x, bool of_keys, int64_t start, int64_t rows) {
    each_row(start, rows, [&](int64_t head, int64_t i, int64_t place) {
      a.feature_row(x + place, text, start + i, of_keys, of(plain, head, i), of(turned, head, i));
    });
  }

  // of [dim, dim]; products with a transposed copy are faster than products that transpose
  void transpose(const float* x, float* out) const {
    for (int64_t i = 0; i < a.dim; ++i)
      for (int64_t j = 0; j < a.dim; ++j) out[j * a.dim + i] = x[i * a.dim + j];
  }

  // total += sum_i factor_i row_i
  void add_rows(const float* rows_of, const float* factors, int64_t rows, float* total) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float factor = factors ? factors[i] : 1.0f, *row = rows_of + i * a.dim;
#pragma omp simd
      for (int64_t f = 0; f < a.dim; ++f) total[f] += factor * row[f];
    }
  }

  // divisors [heads, seq], kept [heads, dim + 1, dim], from the first head on: state = sum_j turned_k_j v_j^T and
  // key_sum = sum_j plain_k_j
  void attend(const float* q, const float* k, const float* v, float* out, float* divisors, float* kept) {
    std::fill_n(kept, heads * a.kept_size(), 0.0f);
    each_chunk([&](int64_t start, int64_t rows) {
      features(k, true, start, rows);
      for (int64_t head = 0; head < heads; ++head) {
        const Matrix values{v + a.place(text, first + head, start), a.stride()};
        product(a.dim, a.dim, rows, {of(turned, head), a.dim, true}, values, a.state(kept, head), a.dim, 1.0f);
        if (a.divides) add_rows(of(plain, head), nullptr, rows, a.key_sum(kept, head));
      }
    });
    std::vector<float> totals(heads);
    for (int64_t head = 0; head < heads; ++head) totals[head] = total(a.key_sum(kept, head), a.dim);
    each_chunk([&](int64_t start, int64_t rows) {
      features(q, false, start, rows);
      for (int64_t head = 0; head < heads; ++head)
        product(rows, a.dim, a.dim, {of(turned, head), a.dim}, {a.state(kept, head), a.dim}, of(numerators, head),
                a.dim);
      each_row(start, rows, [&](int64_t head, int64_t i, int64_t place) {
        float& divisor = divisors[head * a.seq + start + i];
        if (a.divides) {
          const float* row = of(plain, head, i);
          divisor = dot(row, a.key_sum(kept, head), a.dim);
          const float bound = a.bounds() ? a.min_overlap / a.dim * total(row, a.dim) * totals[head] : 0.0f;
          if (bound > divisor) divisor = -bound;
        }
        a.divide_row(of(numerators, head, i), divisor, out + place);
      });
    });
  }

  void differentiate(const float* q, const float* k, const float* v, const float* out, const float* divisors,
                     float* kept, const float* grad_output, float* grad_q, float* grad_k, float* grad_v) {
    std::vector<float> grad_turned(heads * size), grad_key_sums(heads * a.dim), grad_state(heads * a.dim * a.dim);
    std::vector<float> transposed(grad_state.size()), back(a.dim), grad_plain(a.dim), grad_divisors(heads * kChunk);
    for (int64_t head = 0; head < heads; ++head) transpose(a.state(kept, head), matrix(transposed, head));
    each_chunk([&](int64_t start, int64_t rows) {
      features(q, false, start, rows);
      each_row(start, rows, [&](int64_t head, int64_t i, int64_t place) {
        a.undivide_row(out + place, grad_output + place, divisors[head * a.seq + start + i], of(numerators, head, i),
                       grad_divisors[head * kChunk + i]);
      });
      for (int64_t head = 0; head < heads; ++head) {
        product(a.dim, a.dim, rows, {of(turned, head), a.dim, true}, {of(numerators, head), a.dim},
                matrix(grad_state, head), a.dim, start ? 1.0f : 0.0f);
        product(rows, a.dim, a.dim, {of(numerators, head), a.dim}, {matrix(transposed, head), a.dim},
                of(grad_turned, head), a.dim);
      }
      each_row(start, rows, [&](int64_t head, int64_t i, int64_t place) {
        const float grad_divisor = grad_divisors[head * kChunk + i], *sums = a.key_sum(kept, head);
        for (int64_t f = 0; a.divides && f < a.dim; ++f) grad_plain[f] = grad_divisor * sums[f];
        const bool bounded = divisors[head * a.seq + start + i] < 0.0f;
        if (bounded) a.spread(grad_plain.data());
        a.gradient_row(of(plain, head, i), a.divides ? grad_plain.data() : nullptr, of(grad_turned, head, i), text,
                       start + i, back.data(), grad_q + place);
        if (bounded) a.spread(of(plain, head, i));
      });
      for (int64_t head = 0; a.divides && head < heads; ++head)
        add_rows(of(plain, head), grad_divisors.data() + head * kChunk, rows, grad_key_sums.data() + head * a.dim);
    });
    for (int64_t head = 0; head < heads; ++head) transpose(matrix(grad_state, head), matrix(transposed, head));
    each_chunk([&](int64_t start, int64_t rows) {
      features(k, true, start, rows);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t place = a.place(text, first + head, start);
        product(rows, a.dim, a.dim, {of(turned, head), a.dim}, {matrix(grad_state, head), a.dim}, grad_v + place,
                a.stride());
        product(rows, a.dim, a.dim, {v + place, a.stride()}, {matrix(transposed, head), a.dim}, of(grad_turned, head),
                a.dim);
      }
      each_row(start, rows, [&](int64_t head, int64_t i, int64_t place) {
        const float* sums = a.divides ? grad_key_sums.data() + head * a.dim : nullptr;
        // 0 at padding: features are 0 there
        a.gradient_row(of(plain, head, i), sums, of(grad_turned, head, i), text, start + i, back.data(),
                       grad_k + place);
      });
    });
  }
};

// Attention with decay, or causal, with the features of one head gathered row by row.
struct Decaying {
  const LinearAttention& a;
  std::vector<float> plain_q, plain_k, turned_q, turned_k, values, sums_of, ones, scratch;

  explicit Decaying(const LinearAttention& attention)
      : a(attention), plain_q(a.seq * a.dim), plain_k(a.seq * a.dim), turned_q(a.seq * a.dim), turned_k(a.seq * a.dim),
        values(a.seq * a.dim), sums_of(a.seq * a.dim), ones(a.seq, 1.0f) {}

  void compute(int64_t text, int64_t head, const float* q, const float* k, const float* v) {
    for (int64_t i = 0; i < a.seq; ++i) {
      const int64_t place = a.place(text, head, i), at = i * a.dim;
      a.feature_row(q + place, text, i, false, plain_q.data() + at, turned_q.data() + at);
      a.feature_row(k + place, text, i, true, plain_k.data() + at, turned_k.data() + at);
      std::memcpy(values.data() + at, v + place, a.dim * sizeof(float));
    }
  }

  Matrix rows(const std::vector<float>& x) const { return {x.data(), a.dim}; }

  void sum(const Matrix& x, const Matrix& y, const Matrix& z, int64_t head, Sides sides, float* out) {
    sums(x, y, z, a.seq, a.gamma(head), sides, out, scratch);
  }

  void gradients(int64_t text, int64_t head, const std::vector<float>& plain, const float* grad_plain,
                 const std::vector<float>& grad_turned, float* grad_x) const {
    std::vector<float> back(a.dim);
    for (int64_t i = 0; i < a.seq; ++i) {
      const int64_t at = i * a.dim;
      a.gradient_row(plain.data() + at, grad_plain ? grad_plain + at : nullptr, grad_turned.data() + at, text, i,
                     back.data(), grad_x + a.place(text, head, i));
    }
  }

  void attend(int64_t text, int64_t head, const float* q, const float* k, const float* v, float* out, float* divisor) {
    const Matrix one = {ones.data(), 1};
    compute(text, head, q, k, v);
    sum(rows(turned_q), rows(turned_k), rows(values), head, a.sides, sums_of.data());
    if (a.divides) sum(rows(plain_q), rows(plain_k), one, head, a.sides, divisor);
    if (a.bounds()) {
      std::vector<float> totals_q(a.seq), totals_k(a.seq), bound(a.seq);
      for (int64_t i = 0; i < a.seq; ++i) {
        totals_q[i] = a.min_overlap / a.dim * total(plain_q.data() + i * a.dim, a.dim);
        totals_k[i] = total(plain_k.data() + i * a.dim, a.dim);
      }
      sum({totals_q.data(), 1}, {totals_k.data(), 1}, one, head, a.sides, bound.data());
      for (int64_t i = 0; i < a.seq; ++i)
        if (bound[i] > divisor[i]) divisor[i] = -bound[i];
    }
    for (int64_t i = 0; i < a.seq; ++i)
      a.divide_row(sums_of.data() + i * a.dim, divisor[i], out + a.place(text, head, i));
  }

  void differentiate(int64_t text, int64_t head, const float* q, const float* k, const float* v, const float* out,
                     const float* divisor, const float* grad_output, float* grad_q, float* grad_k, float* grad_v) {
    const int64_t size = a.seq * a.dim;
    const Sides back = reversed(a.sides);
    compute(text, head, q, k, v);
    std::vector<float> grad_numerator(size), grad_divisor(a.seq), grad_turned(size), grad_plain(a.divides ? size : 0);
    for (int64_t i = 0; i < a.seq; ++i) {
      const int64_t place = a.place(text, head, i);
      a.undivide_row(out + place, grad_output + place, divisor[i], grad_numerator.data() + i * a.dim, grad_divisor[i]);
    }
    const Matrix of_numerator = rows(grad_numerator), of_divisor = {grad_divisor.data(), 1}, one = {ones.data(), 1};
    float* extra = a.divides ? grad_plain.data() : nullptr;
    sum(rows(turned_k), rows(turned_q), of_numerator, head, back, sums_of.data());
    for (int64_t i = 0; i < a.seq; ++i)
      std::memcpy(grad_v + a.place(text, head, i), sums_of.data() + i * a.dim, a.dim * sizeof(float));
    sum(of_numerator, rows(values), rows(turned_k), head, a.sides, grad_turned.data());
    if (extra) sum(of_divisor, one, rows(plain_k), head, a.sides, extra);
    for (int64_t i = 0; i < a.seq; ++i)
      if (divisor[i] < 0.0f) a.spread(extra + i * a.dim);
    gradients(text, head, plain_q, extra, grad_turned, grad_q);
    for (int64_t i = 0; i < a.seq; ++i)
      if (divisor[i] < 0.0f) a.spread(plain_q.data() + i * a.dim);
    sum(rows(values), of_numerator, rows(turned_q), head, back, grad_turned.data());
    if (extra) sum(one, of_divisor, rows(plain_q), head, back, extra);
    gradients(text, head, plain_k, extra, grad_turned, grad_k);  // 0 at padding, like the features
  }
};

// Heads of a text that are computed together: neighbors without decay, few enough to leave work for every thread.
struct Task {
  int64_t text, first, heads;
};

std::vector<Task> tasks_of(const LinearAttention& a) {
  const int64_t threads = omp_get_max_threads(), fair = (a.batch * a.heads + threads - 1) / threads;
  const int64_t most = std::min(fair, kHeadsTogether);
  std::vector<Task> tasks;
  for (int64_t text = 0; text < a.batch; ++text)
    for (int64_t head = 0; head < a.heads; ++head) {
      if (head && a.is_whole(head) && a.is_whole(head - 1) && tasks.back().heads < most)
        ++tasks.back().heads;
      else
        tasks.push_back({text, head, 1});
    }
  return tasks;
}

}  // namespace

// q, k, v, out: [batch, seq, heads * dim]; divisors [batch, heads, seq]; kept [batch, heads, dim + 1, dim].
// Forward writes out, divisors and kept; with grad_output, backward reads them and writes grad_q, grad_k and grad_v.
EXPORT void linear_attention(int64_t batch, int64_t seq, int64_t heads, int64_t dim, const float* cosine,
                             const float* sine, int64_t text_stride, int interleaved, const uint8_t* key_mask,
                             int causal, const float* gammas, int divides, float min_denominator, float min_overlap,
                             float min_mean_square, const float* q, const float* k, const float* v, float* out,
                             float* divisors, float* kept, const float* grad_output, float* grad_q, float* grad_k,
                             float* grad_v) {
  const Rotation rotation{cosine, sine, text_stride, interleaved};
  const LinearAttention a{
      batch,  seq,     heads,           dim,         rotation,       key_mask, causal ? kLeft : kBoth,
      gammas, divides, min_denominator, min_overlap, min_mean_square};
  const std::vector<Task> tasks = tasks_of(a);
#pragma omp parallel
  {
    std::unique_ptr<Decaying> decaying;
#pragma omp for schedule(static)
    for (size_t number = 0; number < tasks.size(); ++number) {
      const Task& t = tasks[number];
      const int64_t before = t.text * heads + t.first;  // heads before this task
      float *divisor = divisors + before * seq, *kept_of_task = kept + before * a.kept_size();
      if (a.is_whole(t.first)) {
        Whole whole(a, t.text, t.first, t.heads);
        if (grad_output)
          whole.differentiate(q, k, v, out, divisor, kept_of_task, grad_output, grad_q, grad_k, grad_v);
        else
          whole.attend(q, k, v, out, divisor, kept_of_task);
        continue;
      }
      if (!decaying) decaying.reset(new Decaying(a));
      if (grad_output)
        decaying->differentiate(t.text, t.first, q, k, v, out, divisor, grad_output, grad_q, grad_k, grad_v);
      else
        decaying->attend(t.text, t.first, q, k, v, out, divisor);
    }
  }
}

// The next token of causal attention, with a key mask [batch]: q, k, v, out [batch, heads, dim]. The states before and
// after it: key_values [batch, heads, dim, dim], whose rows are in the order of the tensors; keys [batch, heads, dim],
// null without a denominator.
EXPORT void linear_attention_step(int64_t batch, int64_t heads, int64_t dim, const float* cosine, const float* sine,
                                  int64_t text_stride, int interleaved, const uint8_t* key_mask, const float* gammas,
                                  float min_denominator, float min_overlap, float min_mean_square, const float* q,
                                  const float* k, const float* v, const float* key_values, const float* keys,
                                  float* out, float* next_key_values, float* next_keys) {
  const Rotation rotation{cosine, sine, text_stride, interleaved};
  const LinearAttention a{batch,  1,      heads, dim,           rotation,        key_mask,
                          kLeft,  gammas, keys != nullptr, min_denominator, min_overlap,     min_mean_square};
  std::vector<float> buffer(5 * dim);
  float *plain_q = buffer.data(), *plain_k = plain_q + dim, *turned_q = plain_k + dim, *turned_k = turned_q + dim;
  float* numerator = turned_k + dim;
  for (int64_t number = 0; number < batch * heads; ++number) {
    const int64_t text = number / heads, place = number * dim;
    const float gamma = a.gamma(number % heads);
    a.feature_row(q + place, text, 0, false, plain_q, turned_q);
    a.feature_row(k + place, text, 0, true, plain_k, turned_k);
    std::fill_n(numerator, dim, 0.0f);
    for (int64_t f = 0; f < dim; ++f) {
      const int64_t row = (place + rotation.feature(f, dim)) * dim;
#pragma omp simd
      for (int64_t i = 0; i < dim; ++i) {
        const float sum = gamma * key_values[row + i] + turned_k[f] * v[place + i];
        next_key_values[row + i] = sum;
        numerator[i] += turned_q[f] * sum;
      }
    }
    float divisor = 0.0f;
    if (keys) {
      for (int64_t f = 0; f < dim; ++f) next_keys[place + f] = gamma * keys[place + f] + plain_k[f];
      divisor = dot(plain_q, next_keys + place, dim);
      if (a.bounds())
        divisor = std::max(divisor, min_overlap / dim * total(plain_q, dim) * total(next_keys + place, dim));
    }
    a.divide_row(numerator, divisor, out + place);
  }
}
