#pragma once
#include <cstdint>
#include <string>

// oneDNN's products of matrices. LibTorch has a copy of oneDNN in it and does not show this function of it; through
// what it shows, oneDNN makes a kernel for each number of rows, and packed micro-batches have hundreds of them.

namespace frostpipe {

/// dnnl_sgemm: c = op(a) op(b) + beta c where alpha is 1, row by row in memory. op transposes with 'T', and does
/// nothing with 'N'; op(a) is [m, k], op(b) [k, n]. A leading dimension is the distance of two rows. Runs on the
/// caller's OpenMP threads; as many of them give the same bits. Returns 0, or oneDNN's status: 1 where there was no
/// memory.
using SingleGemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                           float alpha, const float* a, std::int64_t leading_a, const float* b, std::int64_t leading_b,
                           float beta, float* c, std::int64_t leading_c);

/// Whether it is faster than LibTorch's own products here: on AMD's processors, where MKL's kernels use no AVX-512.
bool prefers_onednn();

/// Null where it is not preferred, and where the system has no library of oneDNN's (Debian's libdnnl2 or libdnnl3).
SingleGemm find_onednn_gemm();

/// Of that library; empty where there is no such function.
std::string onednn_file();

}  // namespace frostpipe
