// What all operators of the library have in common.
#include "kernels.h"

Sgemm sgemm = nullptr;

EXPORT void set_sgemm(void* function) { sgemm = reinterpret_cast<Sgemm>(function); }
