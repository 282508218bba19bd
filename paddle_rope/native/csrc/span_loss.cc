// The loss of the efficient GlobalPointer from its projections: the scores of all spans of all types are computed in
// blocks, again in backward, and never stored.
#include <algorithm>

#include "kernels.h"

namespace {

constexpr float kNoSpan = -1e30f;   // a negligible score
constexpr int64_t kBlockRows = 64;  // first tokens whose spans are scored together

struct Spans {
  int64_t batch, seq, types, dim, longest;  // spans of at most `longest` tokens
  bool ordered;                             // otherwise pairs of any two tokens count as spans
  Rotation rotation;
  const uint8_t* token_mask;  // [batch, seq], 0 where no span starts or ends, or null
  const int64_t* bounds;      // [batch * types + 1]: where the positives of a text and type begin
  const int64_t* positives;   // [count, 2]: first and last token, neither masked, in order within a text and type
  const float* qk;            // [batch, seq, 2 dim]
  const float* of_types;      // [batch, seq, 2 types]: scores of starts, then of ends, not yet halved

  float factor() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
  bool may_bound(int64_t text, int64_t i) const { return !token_mask || token_mask[text * seq + i]; }
  int64_t begin_of(int64_t first) const { return ordered ? first : 0; }  // the last tokens of its spans
  int64_t end_of(int64_t first) const { return ordered ? std::min(seq, first + longest) : seq; }
};

// The buffers of a thread for a text. Rows are first tokens, columns last ones.
struct Buffer {
  std::vector<float> q, k, products, ends, row, grad_products, grad_q, grad_k, grad_ends;

  Buffer(const Spans& s, bool backward) {
    const int64_t features = s.seq * s.dim, block = kBlockRows * s.seq;
    q.resize(features), k.resize(features), products.resize(block), ends.resize(s.types * s.seq), row.resize(s.seq);
    if (backward) {
      grad_products.resize(block), grad_ends.resize(s.types * s.seq);
      grad_q.resize(features), grad_k.resize(features);
    }
  }

  void fill(const Spans& s, int64_t text) {
    for (int64_t i = 0; i < s.seq; ++i) {
      const float* both = s.qk + (text * s.seq + i) * 2 * s.dim;
      s.rotation.turn(both, q.data() + i * s.dim, text, i, s.dim, s.factor());
      s.rotation.turn(both + s.dim, k.data() + i * s.dim, text, i, s.dim, 1.0f);
      const float* scores = s.of_types + (text * s.seq + i) * 2 * s.types + s.types;
      for (int64_t t = 0; t < s.types; ++t) ends[t * s.seq + i] = s.may_bound(text, i) ? 0.5f * scores[t] : kNoSpan;
    }
  }
};

// Calls visit(first token, offset of its products, number of last tokens) for each token that may start a span, and
// closed(first row, rows, first column, columns) after each block.
template <typename Visit, typename Closed>
void by_blocks(const Spans& s, int64_t text, Buffer& b, Visit visit, Closed closed) {
  for (int64_t start = 0; start < s.seq; start += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, s.seq - start), begin = s.begin_of(start);
    const int64_t columns = s.end_of(start + rows - 1) - begin;
    product(rows, columns, s.dim, {b.q.data() + start * s.dim, s.dim}, {b.k.data() + begin * s.dim, s.dim, true},
            b.products.data(), columns);
    for (int64_t i = start; i < start + rows; ++i) {
      const int64_t first = s.begin_of(i);
      if (s.may_bound(text, i)) visit(i, (i - start) * columns + first - begin, s.end_of(i) - first);
    }
    closed(start, rows, begin, columns);
  }
}

// log(1 + sum exp(x)) of numbers added one by one
struct LogSum {
  float largest = 0.0f;
  double sum = 1.0;

  void raise(float x) {
    if (x <= largest) return;
    sum *= std::exp(static_cast<double>(largest) - x);
    largest = x;
  }
  void add(float x) {
    raise(x);
    sum += std::exp(static_cast<double>(x) - largest);
  }
  float value() const { return static_cast<float>(largest + std::log(sum)); }
};

void measure(const Spans& s, int64_t text, Buffer& b, float* negative, float* positive) {
  b.fill(s, text);
  std::vector<LogSum> others(s.types), there(s.types);
  std::vector<int64_t> next(s.bounds + text * s.types, s.bounds + (text + 1) * s.types);
  const auto visit = [&](int64_t i, int64_t offset, int64_t count) {
    const float *products = b.products.data() + offset, *starts = s.of_types + (text * s.seq + i) * 2 * s.types;
    const int64_t begin = s.begin_of(i);
    float* x = b.row.data();
    for (int64_t t = 0; t < s.types; ++t) {
      const float start = 0.5f * starts[t], *ends = b.ends.data() + t * s.seq + begin;
      float largest = kNoSpan;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) x[j] = products[j] + start + ends[j];
      for (int64_t& at = next[t]; at < s.bounds[text * s.types + t + 1] && s.positives[2 * at] == i; ++at) {
        float& score = x[s.positives[2 * at + 1] - begin];
        there[t].add(-score);
        score = kNoSpan;
      }
#pragma omp simd reduction(max : largest)
      for (int64_t j = 0; j < count; ++j) largest = x[j] > largest ? x[j] : largest;
      others[t].raise(largest);
      const float shift = others[t].largest;
      float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < count; ++j) sum += exponential(x[j] - shift);
      others[t].sum += sum;
    }
  };
  by_blocks(s, text, b, visit, [](int64_t, int64_t, int64_t, int64_t) {});
  for (int64_t t = 0; t < s.types; ++t) {
    negative[text * s.types + t] = others[t].value();
    positive[text * s.types + t] = there[t].value();
  }
}

void differentiate(const Spans& s, int64_t text, Buffer& b, const float* negative, const float* positive,
                   const float* grad_losses, float* grad_qk, float* grad_of_types) {
  b.fill(s, text);
  for (auto* sums : {&b.grad_q, &b.grad_k, &b.grad_ends}) std::fill(sums->begin(), sums->end(), 0.0f);
  std::vector<int64_t> next(s.bounds + text * s.types, s.bounds + (text + 1) * s.types);
  float* grad_text = grad_of_types + text * s.seq * 2 * s.types;
  std::fill(grad_text, grad_text + s.seq * 2 * s.types, 0.0f);
  std::fill(b.grad_products.begin(), b.grad_products.end(), 0.0f);
  const auto visit = [&](int64_t i, int64_t offset, int64_t count) {
    const float *products = b.products.data() + offset, *starts = s.of_types + (text * s.seq + i) * 2 * s.types;
    const int64_t begin = s.begin_of(i);
    float *x = b.row.data(), *grad_products = b.grad_products.data() + offset;
    for (int64_t t = 0; t < s.types; ++t) {
      const int64_t number = text * s.types + t;
      const float start = 0.5f * starts[t], *ends = b.ends.data() + t * s.seq + begin;
      const float shift = negative[number], grad_loss = grad_losses[number];
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) x[j] = grad_loss * exponential(products[j] + start + ends[j] - shift);
      for (int64_t& at = next[t]; at < s.bounds[number + 1] && s.positives[2 * at] == i; ++at) {
        const int64_t j = s.positives[2 * at + 1] - begin;
        x[j] = -grad_loss * exponential(-(products[j] + start + ends[j]) - positive[number]);
      }
      float of_start = 0.0f, *grad_ends = b.grad_ends.data() + t * s.seq + begin;
#pragma omp simd reduction(+ : of_start)
      for (int64_t j = 0; j < count; ++j) {
        of_start += x[j];
        grad_products[j] += x[j];
        grad_ends[j] += x[j];
      }
      grad_text[i * 2 * s.types + t] = 0.5f * of_start;
    }
  };
  const auto closed = [&](int64_t start, int64_t rows, int64_t begin, int64_t columns) {
    float *d = b.grad_products.data(), *q = b.q.data() + start * s.dim, *k = b.k.data() + begin * s.dim;
    product(rows, s.dim, columns, {d, columns}, {k, s.dim}, b.grad_q.data() + start * s.dim, s.dim);
    product(columns, s.dim, rows, {d, columns, true}, {q, s.dim}, b.grad_k.data() + begin * s.dim, s.dim, 1.0f);
    std::fill(d, d + rows * columns, 0.0f);
  };
  by_blocks(s, text, b, visit, closed);
  for (int64_t i = 0; i < s.seq; ++i) {
    float* both = grad_qk + (text * s.seq + i) * 2 * s.dim;
    s.rotation.turn<kBack>(b.grad_q.data() + i * s.dim, both, text, i, s.dim, s.factor());
    s.rotation.turn<kBack>(b.grad_k.data() + i * s.dim, both + s.dim, text, i, s.dim, 1.0f);
    for (int64_t t = 0; t < s.types; ++t) grad_text[i * 2 * s.types + s.types + t] = 0.5f * b.grad_ends[t * s.seq + i];
  }
}

}  // namespace

// negative, positive [batch, types]: log(1 + sum exp(s)) over the negative spans, log(1 + sum exp(-s)) over the
// positive ones; the loss is their sum. Forward writes them; with grad_losses, backward reads them and writes
// gradients.
EXPORT void span_loss(int64_t batch, int64_t seq, int64_t types, int64_t dim, int64_t longest, int ordered,
                      const float* cosine, const float* sine, int64_t text_stride, int interleaved,
                      const uint8_t* token_mask, const int64_t* bounds, const int64_t* positives, const float* qk,
                      const float* of_types, float* negative, float* positive, const float* grad_losses,
                      float* grad_qk, float* grad_of_types) {
  const Rotation rotation{cosine, sine, text_stride, interleaved};
  const Spans s{batch, seq, types, dim, longest, ordered != 0, rotation, token_mask, bounds, positives, qk, of_types};
#pragma omp parallel
  {
    Buffer buffer(s, grad_losses);
#pragma omp for schedule(static)
    for (int64_t text = 0; text < batch; ++text) {
      if (grad_losses)
        differentiate(s, text, buffer, negative, positive, grad_losses, grad_qk, grad_of_types);
      else
        measure(s, text, buffer, negative, positive);
    }
  }
}
