#include "plan/batch.h"

#include <algorithm>

#include "profiles/error.h"

namespace frostpipe {

namespace {

/// Piece `part`: the first num_samples % num_parts pieces hold one sample more.
SampleRange piece(int num_samples, int num_parts, int part) {
  FROSTPIPE_CHECK(num_samples >= 0 && num_parts >= 1 && part >= 0 && part < num_parts,
                  "callers name an existing piece");
  const int size = num_samples / num_parts;
  const int num_larger = num_samples % num_parts;
  const int begin = part * size + std::min(part, num_larger);
  return {begin, begin + size + (part < num_larger ? 1 : 0)};
}

}  // namespace

std::vector<SampleRange> split_evenly(int num_samples, int num_parts) {
  FROSTPIPE_CHECK(num_parts >= 1, "a mini-batch is cut into at least one piece");
  std::vector<SampleRange> pieces;
  pieces.reserve(num_parts);
  for (int part = 0; part < num_parts; ++part) pieces.push_back(piece(num_samples, num_parts, part));
  return pieces;
}

SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch) {
  return piece(num_samples, data_parallel_size * num_micro_batches, replica * num_micro_batches + micro_batch);
}

}  // namespace frostpipe
