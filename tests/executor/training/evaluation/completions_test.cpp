// Completions with cached keys and values, of prompts in one batch. Oracle: one process without stages, which computes
// the whole text again after each token.
#include "executor/training/evaluation/completions.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executor/models/layers.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

constexpr std::size_t kPositions = 12;
constexpr int kNewTokens = 7;

std::vector<TransformerConfig> causal_models() {
  return {small_config(Family::gpt2, Task::causal_language_modeling), small_llama(), small_decoder(), small_neox()};
}

/// Prompts of 1 to 9 tokens, unsorted.
std::vector<TokenIds> small_prompts() {
  std::vector<TokenIds> prompts;
  for (int i = 0; i < 14; ++i) {
    TokenIds& prompt = prompts.emplace_back();
    for (int t = 0; t < 1 + i * 5 % 9; ++t) prompt.push_back((i * 13 + t * 7) % 40);
  }
  return prompts;
}

/// Computes each text again after each of its tokens.
std::vector<TokenIds> expected_completions(const TransformerConfig& config, const CompletionOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<LayerState> layers;
  for (int layer = 0; layer < 8; ++layer) {
    layers.push_back(make_layer_state(parameters_of(config, layer), layer_types_of(DType::kFloat64), at::kCPU,
                                      /*trains=*/false, 0));
    randomise_layer(config, layer, kSeed, layers.back());
  }
  std::vector<TokenIds> completions;
  for (const TokenIds& prompt : small_prompts()) {
    TokenIds text = prompt, &completion = completions.emplace_back();
    while (static_cast<std::int64_t>(completion.size()) < options.max_new_tokens &&
           static_cast<std::int64_t>(text.size()) < options.longest &&
           (completion.empty() || std::ranges::count(options.end_tokens, completion.back()) == 0)) {
      const MicroBatch batch{.lengths = {static_cast<std::int64_t>(text.size())},
                             .input = at::tensor(text, at::kInt).to(at::kLong),
                             .type = at::kDouble};
      at::Tensor x;
      for (int layer = 0; layer < 8; ++layer) x = forward_layer(config, layer, layers[layer].parameters, x, batch);
      completion.push_back(static_cast<std::int32_t>(x.select(0, x.size(0) - 1).argmax().item<std::int64_t>()));
      text.push_back(completion.back());
    }
  }
  return completions;
}

/// Tokens that end some completions and not others: the third tokens of three of them.
std::vector<std::int32_t> some_end_tokens(const TransformerConfig& config) {
  const std::vector<TokenIds> without_end = expected_completions(config, {.max_new_tokens = 3, .longest = kPositions});
  return {without_end[1].back(), without_end[5].back(), without_end[9].back()};
}

void completions_equal_one_process(const RankEnvironment& self, const Phase& phase) {
  Job job(self);
  for (const TransformerConfig& config : causal_models()) {
    job.train_now(config);
    const std::unique_ptr<Samples> data = small_samples(job.config, 1);
    RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat64);
    session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
      randomise_layer(config, layer, kSeed, state);
    });
    CompletionOptions options{.max_new_tokens = kNewTokens, .longest = kPositions};
    for (const std::vector<std::int32_t>& end_tokens : {std::vector<std::int32_t>{}, some_end_tokens(config)}) {
      options.end_tokens = end_tokens;
      const std::vector<TokenIds> expected = expected_completions(config, options);
      for (const int max_samples : {3, 64}) {
        options.max_samples = max_samples;
        for (const std::int64_t max_tokens : {1, 1000}) {
          options.max_tokens = max_tokens;
          const std::vector<TokenIds> found = completions_of(small_prompts(), options, session, *job.communicator);
          CHECK_RANK(found == expected, fmt::format("{}: {} instead of {}", name_of(config), found, expected));
        }
      }
    }
  }
}

Phase tensor_phase(int p, bool sequence_parallel) {
  Phase phase = small_phase(p, 1, 2, "1F1B", 3);
  phase.layout.tensor_parallel_size = 2;
  phase.layout.sequence_parallel = sequence_parallel;
  return phase;
}

RANK_TEST(Completions, On1RankEqualWholeTextsComputedAnewAfterEachToken, 1) {
  completions_equal_one_process(self, small_phase(1, 1, 1, "1F1B", 3));
}
RANK_TEST(Completions, On2StagesEqualWholeTextsComputedAnewAfterEachToken, 2) {
  completions_equal_one_process(self, small_phase(2, 1, 2, "1F1B", 0));
}
RANK_TEST(Completions, On2StagesOf2ReplicasEqualWholeTextsComputedAnewAfterEachToken, 4) {
  completions_equal_one_process(self, small_phase(2, 2, 2, "1F1B", 3));
}
RANK_TEST(Completions, OnTwoStagesOfARankEqualWholeTextsComputedAnewAfterEachToken, 2) {
  completions_equal_one_process(self, small_phase(2, 1, 4, "Interleaved1F1B", 3, 2));
}
RANK_TEST(Completions, On2TensorRanksEqualWholeTextsComputedAnewAfterEachToken, 2) {
  completions_equal_one_process(self, tensor_phase(1, false));
}
RANK_TEST(Completions, WithSequenceParallelismEqualWholeTextsComputedAnewAfterEachToken, 4) {
  completions_equal_one_process(self, tensor_phase(2, true));
}

}  // namespace
}  // namespace frostpipe::test
