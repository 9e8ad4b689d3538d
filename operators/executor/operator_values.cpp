#include "operators/executor/operator_values.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "base/error.h"

namespace frostpipe {

void OperatorValues::add(int op, Piece piece) {
  if (piece.num_readers == 0) return;
  auto& pieces = pieces_[op];
  const auto after = std::ranges::find_if(pieces, [&](const Piece& other) { return other.begin > piece.begin; });
  pieces.insert(after, std::move(piece));
}

at::Tensor OperatorValues::samples(int op, int begin, int end) const {
  std::vector<at::Tensor> parts;
  int next = begin;
  for (const Piece& piece : pieces_.at(op)) {
    const int from = std::max(next, piece.begin), until = std::min(end, piece.end);
    if (from != next || from >= until) continue;
    parts.push_back(piece.tensor.narrow(0, from - piece.begin, until - from));
    next = until;
  }
  FROSTPIPE_CHECK(next == end, "transfers bring all samples that a task reads");
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

const at::Tensor& OperatorValues::of_task(int op, int task) const {
  const auto& pieces = pieces_.at(op);
  return std::ranges::find(pieces, task, &Piece::task)->tensor;
}

void OperatorValues::release(int op, int task) {
  auto& pieces = pieces_.at(op);
  const auto piece = std::ranges::find(pieces, task, &Piece::task);
  if (--piece->num_readers > 0) return;
  pieces.erase(piece);
  if (pieces.empty()) pieces_.erase(op);
}

}  // namespace frostpipe
