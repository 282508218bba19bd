// Matrix products of bfloat16 factors with float32 sums, by the oneDNN that Paddle ships (Paddle itself multiplies in
// float32): by its gemm or, on processors with AMX, where that is faster, by its matmul primitive.
#include <dlfcn.h>

#include "kernels.h"

Sgemm sgemm = nullptr;

namespace {

// Functions of oneDNN's C interface. Objects are handles, and 0 means success.
struct Dnnl {
  void* library;

  template <typename Function>
  Function find(const char* name) const {
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
  }
#define DNNL(name, ...) int (*name)(__VA_ARGS__) = find<int (*)(__VA_ARGS__)>("dnnl_" #name)
  DNNL(gemm_bf16bf16f32, char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
       const bfloat16* a, int64_t, const bfloat16* b, int64_t, float beta, float* c, int64_t);
  DNNL(engine_create, void**, int kind, size_t index);
  DNNL(stream_create, void**, void* engine, unsigned flags);
  DNNL(stream_wait, void*);
  DNNL(stream_destroy, void*);
  DNNL(memory_desc_create_with_strides, void**, int axes, const int64_t* sizes, int type, const int64_t* strides);
  DNNL(memory_desc_destroy, void*);
  DNNL(memory_create, void**, const void* description, void* engine, void* data);
  DNNL(memory_destroy, void*);
  DNNL(matmul_primitive_desc_create, void**, void* engine, const void* a, const void* b, const void* bias,
       const void* c, const void* attributes);
  DNNL(primitive_desc_destroy, void*);
  DNNL(primitive_create, void**, const void* description);
  DNNL(primitive_execute, const void*, void* stream, int count, const void* arguments);
  DNNL(primitive_destroy, void*);
#undef DNNL
};
Dnnl dnnl{nullptr};
void* engine = nullptr;  // null: products are by gemm

constexpr int kCpu = 1, kInOrder = 1, kBfloat16 = 2, kFloat32 = 3;
constexpr int kArguments[3] = {1, 33, 17};  // source, weights, destination

struct Handle {
  int (*destroy)(void*);
  void* object = nullptr;

  ~Handle() {
    if (object) destroy(object);
  }
};

// c = a b by a primitive; false if there is none. oneDNN compiles it once for these sizes and keeps the last 1,024, so
// that here, where nothing is kept, no thread waits for another; to find it takes 3 microseconds.
bool multiplied(int64_t m, int64_t n, int64_t k, const MatrixOf<bfloat16>& a, const MatrixOf<bfloat16>& b, float* c,
                int64_t stride) {
  const int64_t sizes[3][2] = {{m, k}, {k, n}, {m, n}}, strides[3][2] = {
      {a.transposed ? 1 : a.stride, a.transposed ? a.stride : 1},
      {b.transposed ? 1 : b.stride, b.transposed ? b.stride : 1}, {stride, 1}};
  void* data[3] = {const_cast<bfloat16*>(a.data), const_cast<bfloat16*>(b.data), c};
  Handle forms[3], memories[3], stream{dnnl.stream_destroy}, plan{dnnl.primitive_desc_destroy},
      primitive{dnnl.primitive_destroy};
  struct {
    int kind;
    void* memory;
  } arguments[3];
  for (int i = 0; i < 3; ++i) {
    forms[i].destroy = dnnl.memory_desc_destroy, memories[i].destroy = dnnl.memory_destroy;
    dnnl.memory_desc_create_with_strides(&forms[i].object, 2, sizes[i], i < 2 ? kBfloat16 : kFloat32, strides[i]);
    dnnl.memory_create(&memories[i].object, forms[i].object, engine, data[i]);
    arguments[i] = {kArguments[i], memories[i].object};
  }
  dnnl.stream_create(&stream.object, engine, kInOrder);
  return !dnnl.matmul_primitive_desc_create(&plan.object, engine, forms[0].object, forms[1].object, nullptr,
                                            forms[2].object, nullptr) &&
         !dnnl.primitive_create(&primitive.object, plan.object) &&
         !dnnl.primitive_execute(primitive.object, stream.object, 3, arguments) && !dnnl.stream_wait(stream.object);
}

}  // namespace

void product(int64_t m, int64_t n, int64_t k, const MatrixOf<bfloat16>& a, const MatrixOf<bfloat16>& b, float* c,
             int64_t stride, float beta) {
  if (engine && beta == 0.0f && multiplied(m, n, k, a, b, c, stride)) return;
  dnnl.gemm_bf16bf16f32(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data, a.stride, b.data,
                        b.stride, beta, c, stride);
}

EXPORT void set_sgemm(void* function) { sgemm = reinterpret_cast<Sgemm>(function); }

// Takes dlopen's handle of oneDNN, and whether its primitive is used; returns whether it has products in bfloat16.
EXPORT int set_dnnl(void* library, int by_primitive) {
  dnnl = Dnnl{library};
  engine = nullptr;
  if (by_primitive && dnnl.matmul_primitive_desc_create) dnnl.engine_create(&engine, kCpu, 0);
  return dnnl.gemm_bf16bf16f32 != nullptr;
}

EXPORT void round_to_bfloat16(int64_t size, const float* x, bfloat16* y) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < size; ++i) y[i] = x[i];
}

// c [m, n] = a b for row-major matrices; a factor to be transposed is stored with rows and columns exchanged
EXPORT void product_bfloat16(int64_t m, int64_t n, int64_t k, int transpose_a, int transpose_b, const bfloat16* a,
                             const bfloat16* b, float* c) {
  product(m, n, k, {a, transpose_a ? m : k, transpose_a != 0}, {b, transpose_b ? k : n, transpose_b != 0}, c, n);
}
