// The matrix products of a GPU, by cuBLAS: f32 in f32, bf16 with sums in f32.
#include "common/compute/cuda_backend.hpp"

namespace fivecuts {
namespace {

void check_blas(cublasStatus_t code, const char* expression,
                std::source_location where = std::source_location::current()) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  if (code == CUBLAS_STATUS_ALLOC_FAILED) {
    throw OutOfMemory(std::string("out of memory: the GPU has none left for cuBLAS (") +
                      expression + ")");
  }
  fail(std::string(expression) + " failed: " + cublasGetStatusString(code), where);
}
#define FIVECUTS_CUBLAS(call) check_blas(call, #call)

cudaDataType_t type_of(Tensor t) { return t.type() == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

int size(std::int64_t n) {
  require(n <= INT32_MAX, "cuBLAS takes matrices of at most 2^31 - 1 rows and columns");
  return static_cast<int>(n);
}

}  // namespace

cublasHandle_t CudaBackend::blas() {
  LaneState& state = lane();
  if (state.blas == nullptr) {
    FIVECUTS_CUBLAS(cublasCreate(&state.blas));
    FIVECUTS_CUBLAS(cublasSetStream(state.blas, state.stream));
  }
  return state.blas;
}

// cuBLAS reads a matrix by columns: for it, our row-major c = a b is c^T = b^T a^T.
void CudaBackend::product(bool transpose_a, bool transpose_b, Tensor a, Tensor b, Tensor c,
                          float beta) {
  const int m = size(c.rows()), n = size(c.cols()), k = size(transpose_a ? a.rows() : a.cols());
  if (c.empty()) return;
  if (k == 0) return beta == 0 ? zero(c) : void();
  const float one = 1;
  FIVECUTS_CUBLAS(cublasGemmEx(
      blas(), transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, n,
      m, k, &one, b.data(), type_of(b), size(b.cols()), a.data(), type_of(a), size(a.cols()), &beta,
      c.data(), type_of(c), n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  launched();
}

void CudaBackend::multiply(Tensor a, Tensor b, Tensor c) { product(false, false, a, b, c, 0); }

void CudaBackend::multiply_transposed(Tensor a, Tensor b, Tensor c) {
  product(false, true, a, b, c, 0);
}

void CudaBackend::add_transposed_product(Tensor a, Tensor b, Tensor c) {
  product(true, false, a, b, c, 1);
}

}  // namespace fivecuts
