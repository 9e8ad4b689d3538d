#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/runtime/rank_session.h"

namespace frostpipe {

using TokenIds = std::vector<std::int32_t>;

/// How a causal model goes on with prompts.
struct CompletionOptions {
  std::vector<std::int32_t> end_tokens{};  // a completion ends with the first of them
  std::int64_t most_new_tokens = 128;
  std::int64_t longest = 0;  // tokens of a prompt and its completion: the positions that the model has
  /// At a time, of which keys and values are kept: prompts, and tokens of these with their completions.
  int most_samples = 64;
  std::int64_t most_tokens = std::numeric_limits<std::int64_t>::max();
  int batches_at_once = 1;  // that go through a pipeline one behind the other
  std::function<void(std::size_t completed)> progress = [](std::size_t) {};
};

/// What the model writes after each prompt, always the most likely token, with the end token. Every prompt has a token
/// and room for another one. Prompts that are about equally long go on together, from where the shortest ends token by
/// token. `runner`: null on a rank that the phase leaves idle. `communicator`: of all ranks, which call it together,
/// and get the same; null for one that is alone.
std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, const CompletionOptions& options,
                                     ScheduleRunner* runner, Communicator* communicator);

/// The same by the ranks of a session, with a batch at once for each pipeline rank of each replica.
std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, CompletionOptions options,
                                     RankSession& session, Communicator& communicator);

}  // namespace frostpipe
