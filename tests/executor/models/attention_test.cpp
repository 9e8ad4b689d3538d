// Oracle: attention and its gradients by LibTorch's autograd, group by group.
#include "executor/models/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/models/packed_attention.h"

namespace frostpipe {
namespace {

constexpr std::int64_t kHeads = 3, kHidden = 12;
TransformerConfig config_that_is(bool is_causal) {
  TransformerConfig config{.hidden_size = kHidden, .num_attention_heads = kHeads};
  config.is_causal = is_causal;
  return config;
}

/// Repeated lengths, and one sample with half of all tokens.
MicroBatch batch_of(std::vector<std::int64_t> lengths) {
  MicroBatch batch;
  batch.lengths = std::move(lengths);
  return batch;
}
const std::vector<std::vector<std::int64_t>> kLengths{{1}, {5, 5, 5}, {1, 2, 2, 3, 4, 4, 4, 9}, {2, 3, 30}};

struct Result {
  at::Tensor output, query_gradient, key_value_gradient;
};

template <class Attend>
Result result_of(Attend attend, const MicroBatch& batch, bool has_one_query) {
  const std::int64_t tokens = batch.num_tokens();
  const auto options = at::TensorOptions().dtype(at::kDouble);
  AttentionInput input{at::sin(at::arange(tokens * 3 * kHidden, options)).view({tokens, 3 * kHidden})};
  if (has_one_query)
    input = {.query = input.query.narrow(0, 0, batch.size()).narrow(1, 0, kHidden).contiguous(),
             .key_value = input.query.narrow(1, kHidden, 2 * kHidden).contiguous(),
             .has_one_query = true};
  input.query.requires_grad_(true);
  if (has_one_query) input.key_value.requires_grad_(true);
  const at::Tensor output = attend(input);
  torch::autograd::backward({output}, {at::cos(at::arange(output.numel(), options)).view(output.sizes())});
  return {output.detach(), input.query.grad(), has_one_query ? input.key_value.grad() : at::Tensor()};
}

void expect_equal(const Result& one, const Result& other) {
  constexpr double kRounding = 1e-12;
  EXPECT_TRUE(at::allclose(one.output, other.output, kRounding, kRounding));
  EXPECT_TRUE(at::allclose(one.query_gradient, other.query_gradient, kRounding, kRounding));
  ASSERT_EQ(one.key_value_gradient.defined(), other.key_value_gradient.defined());
  if (one.key_value_gradient.defined()) {
    EXPECT_TRUE(at::allclose(one.key_value_gradient, other.key_value_gradient, kRounding, kRounding));
  }
}

TEST(Attention, InOneOperationIsThatOfLibTorchsAutograd) {
  for (const auto& lengths : kLengths) {
    const MicroBatch batch = batch_of(lengths);
    for (const bool has_one_query : {false, true}) {
      for (const bool is_causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << lengths.size() << " samples, one query " << has_one_query << ", causal "
                                        << is_causal);
        const TransformerConfig config = config_that_is(is_causal);
        expect_equal(
            result_of(
                [&](const AttentionInput& input) {
                  return attend_in_one(input, lengths, rule_of(config, /*layer=*/1));
                },
                batch, has_one_query),
            result_of(
                [&](const AttentionInput& input) { return attend_by_autograd(config, /*layer=*/1, input, batch); },
                batch, has_one_query));
      }
    }
  }
}

/// The copying operators of LibTorch, by name.
class CountedCopies {
 public:
  CountedCopies() {
    counts().clear();
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                                           const std::string name = function.name();
                                           if (name == "aten::clone" || name == "aten::cat") ++counts()[name];
                                           return std::unique_ptr<at::ObserverContext>();
                                         }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountedCopies() { at::removeCallback(handle_); }
  CountedCopies(const CountedCopies&) = delete;
  CountedCopies& operator=(const CountedCopies&) = delete;
  static std::map<std::string, int>& counts() {
    static std::map<std::string, int> by_name;
    return by_name;
  }

 private:
  at::CallbackHandle handle_;
};

/// For samples of one length, such as blocks of text, the gradients of queries, keys and values are joined once,
/// without further copies. With two lengths there is one copy for each, one for both, and one for the outputs.
TEST(Attention, OfEqualLengthsCopiesNoGradients) {
  const auto copies = [](const std::vector<std::int64_t>& lengths) {
    const MicroBatch batch = batch_of(lengths);
    const CountedCopies counted;
    result_of(
        [&](const AttentionInput& input) {
          return attend_by_autograd(config_that_is(false), /*layer=*/1, input, batch);
        },
        batch, /*has_one_query=*/false);
    return CountedCopies::counts();
  };
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(copies({5, 5, 5}), (Counts{{"aten::cat", 1}}));
  EXPECT_EQ(copies({2, 3}), (Counts{{"aten::cat", 4}}));
}

TEST(Attention, OfSeveralThreadsRepeatsToTheBitAndIsThatOfOneButForRounding) {
  const MicroBatch batch = batch_of(kLengths[2]);
  const auto of_threads = [&](int threads) {
    at::set_num_threads(threads);
    return result_of(
        [&](const AttentionInput& input) {
          return attend_in_one(input, batch.lengths, rule_of(config_that_is(false), 1));
        },
        batch, false);
  };
  const int before = at::get_num_threads();
  const Result one = of_threads(1), three = of_threads(3);
  expect_equal(one, three);
  for (int repetition = 0; repetition < 20; ++repetition) {
    const Result again = of_threads(3);
    EXPECT_TRUE(at::equal(again.output, three.output));
    EXPECT_TRUE(at::equal(again.query_gradient, three.query_gradient));
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace frostpipe
