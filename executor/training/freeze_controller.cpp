#include "executor/training/freeze_controller.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace frostpipe {

FreezeController::FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps)
    : rule_(make_freeze_rule(policy, num_blocks, num_steps)), norm_sums_(num_blocks, 0.0) {}

void FreezeController::record(const std::vector<double>& block_square_sums) {
  if (block_square_sums.empty()) return;
  for (std::size_t block = 0; block < norm_sums_.size(); ++block)
    norm_sums_[block] += std::sqrt(block_square_sums[block]);
  ++num_recorded_;
}

std::vector<double> FreezeController::agreed_sums(Communicator& communicator) const {
  // Each rank fills a row of its own, and the rows are summed: adding zeros changes no bit.
  const std::size_t width = norm_sums_.size() + 1;
  std::vector<double> rows(width * communicator.world_size(), 0.0);
  const std::ptrdiff_t own = static_cast<std::ptrdiff_t>(width) * communicator.rank();
  std::copy(norm_sums_.begin(), norm_sums_.end(), rows.begin() + own);
  rows[own + width - 1] = num_recorded_;
  rows = communicator.sum(std::move(rows));
  std::size_t best = 0;
  for (std::size_t rank = 1; rank < rows.size() / width; ++rank) {
    if (rows[(rank + 1) * width - 1] > rows[(best + 1) * width - 1]) best = rank;
  }
  return {rows.begin() + static_cast<std::ptrdiff_t>(best * width),
          rows.begin() + static_cast<std::ptrdiff_t>((best + 1) * width)};
}

int FreezeController::decide(int step, int frozen, Communicator& communicator) {
  std::vector<double> norms = agreed_sums(communicator);
  const double recorded = std::max(1.0, norms.back());
  norms.pop_back();
  for (double& norm : norms) norm /= recorded;
  std::fill(norm_sums_.begin(), norm_sums_.end(), 0.0);
  num_recorded_ = 0;
  const int decided = std::max(frozen, rule_->decide(step, frozen, norms));
  if (step < hold_until_) return frozen;
  return frozen + (decided - frozen + (1 << num_slow_downs_) - 1) / (1 << num_slow_downs_);
}

void FreezeController::slow_down(int step) {
  hold_until_ = step;
  num_slow_downs_ = std::min(num_slow_downs_ + 1, 16);
}

std::vector<double> FreezeController::state() const {
  std::vector<double> all{static_cast<double>(hold_until_), static_cast<double>(num_slow_downs_)};
  for (const auto& part : {norm_sums_, {num_recorded_}, rule_->state()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void FreezeController::restore(const std::vector<double>& state, const std::string& source) {
  const std::size_t own = 3 + norm_sums_.size();
  if (state.size() < own || !rule_->restore(std::span(state).subspan(own))) {
    throw InvalidInput(source + ": freeze_state", "must be that of this rule and model",
                       std::to_string(state.size()) + " numbers");
  }
  hold_until_ = static_cast<int>(state[0]);
  num_slow_downs_ = std::clamp(static_cast<int>(state[1]), 0, 16);
  std::copy_n(state.begin() + 2, norm_sums_.size(), norm_sums_.begin());
  num_recorded_ = state[own - 1];
}

}  // namespace frostpipe
