#pragma once
#include <cstdint>
#include <string>

// These functions give access to oneDNN's matrix product. LibTorch includes oneDNN but does not expose this function;
// through the interface that it exposes, oneDNN compiles a kernel for each number of rows, and packed micro-batches
// have hundreds of different ones.

namespace frostpipe {

/// The type of dnnl_sgemm: c = alpha op(a) op(b) + beta c for row-major matrices. op transposes for 'T' and does
/// nothing for 'N'; op(a) is [m, k] and op(b) is [k, n]. A leading dimension is the distance between two rows. It runs
/// on the caller's OpenMP threads; the same number of threads gives the same bits. Returns 0, or oneDNN's status (1:
/// out of memory).
using SingleGemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                           float alpha, const float* a, std::int64_t leading_a, const float* b, std::int64_t leading_b,
                           float beta, float* c, std::int64_t leading_c);

/// True if oneDNN is faster here than LibTorch's own products: on AMD's processors, where MKL's kernels do not use
/// AVX-512.
bool prefers_onednn();

/// Returns null if oneDNN is not preferred, if the system has no oneDNN library (Debian's libdnnl2 or libdnnl3), and in
/// builds with the address sanitizer.
SingleGemm find_onednn_gemm();

/// Returns the path of the library that has find_onednn_gemm(); "" if that is null.
std::string onednn_file();

}  // namespace frostpipe
