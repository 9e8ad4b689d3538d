#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/runtime/rank_session.h"

namespace frostpipe {

using TokenIds = std::vector<std::int32_t>;

/// Options of continuing prompts with a causal model.
struct CompletionOptions {
  std::vector<std::int32_t> end_tokens{};  // each of these tokens ends a completion
  std::int64_t max_new_tokens = 128;
  std::int64_t longest = 0;  // limit of the tokens of a prompt and its completion: the positions of the model
  /// Limits of a batch, for whose tokens keys and values are kept: the number of prompts, and the number of tokens if
  /// all prompts with their completions are as long as the longest. A batch has at least one prompt.
  int max_samples = 64;
  std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max();
  int batches_at_once = 1;  // number of batches that are continued at the same time
  std::function<void(std::size_t completed)> progress = [](std::size_t) {};  // gets the number of completed prompts
};

/// Returns the completion of each prompt by greedy decoding, including the end token. Every prompt must have a token
/// and room for another one. Prompts of similar length are continued together, token by token from the end of the
/// shortest. `runner` is null on an idle rank. `communicator` has all ranks, which must call this together and get the
/// same result; null for a single rank.
std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, const CompletionOptions& options,
                                     ScheduleRunner* runner, Communicator* communicator);

/// Does the same on the ranks of a session, with one batch at a time per pipeline rank of each replica.
std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, CompletionOptions options,
                                     RankSession& session, Communicator& communicator);

}  // namespace frostpipe
