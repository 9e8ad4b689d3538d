// LibTorch's attention kernels for packed samples of any lengths, which do not exist on the CPU: they are computed
// sample by sample with the CPU's kernels. They are as strict as CUDA's about sizes, types and the offsets of samples.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

namespace frostpipe::test {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

/// Samples of [tokens, heads, size], with their offsets as [samples + 1] int32.
struct Packed {
  at::Tensor query, key, value;  // CPU tensors
  at::Tensor query_begins, key_begins;
  bool is_causal;
  std::optional<double> scale;

  Packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& begins_of_queries,
         const at::Tensor& begins_of_keys, std::int64_t longest_query, std::int64_t longest_key, bool causal,
         std::optional<double> with_scale)
      : query(q),
        key(k),
        value(v),
        query_begins(begins_of_queries),
        key_begins(begins_of_keys),
        is_causal(causal),
        scale(with_scale) {
    const std::int64_t aligned = 16 / query.element_size();
    for (const at::Tensor& tensor : {query, key, value}) {
      TORCH_CHECK(tensor.dim() == 3 && tensor.scalar_type() == query.scalar_type(),
                  "[tokens, heads, size] of one type");
      TORCH_CHECK(tensor.size(1) == query.size(1) && tensor.size(2) == query.size(2), "as many heads of one size");
      TORCH_CHECK(tensor.stride(2) == 1 && tensor.stride(0) % aligned == 0 && tensor.stride(1) % aligned == 0 &&
                      tensor.storage_offset() % aligned == 0,
                  "aligned to 16 bytes");
    }
    TORCH_CHECK(query_begins.sizes() == key_begins.sizes(), "as many samples of queries as of keys");
    for (const auto& [begins, tensor, longest] :
         {std::tuple(query_begins, query, longest_query), std::tuple(key_begins, key, longest_key)}) {
      TORCH_CHECK(begins.scalar_type() == at::kInt && begins.dim() == 1 && begins.is_contiguous(),
                  "[samples + 1] int32");
      TORCH_CHECK(begins[0].item<int>() == 0 && begins[-1].item<std::int64_t>() == tensor.size(0), "all tokens");
      TORCH_CHECK(begins.diff().max().item<std::int64_t>() <= longest, "the longest sample is longer than was said");
    }
  }
  std::int64_t samples() const { return key_begins.size(0) - 1; }
  /// [1, heads, tokens of the sample, size]
  static at::Tensor of(const at::Tensor& packed, const at::Tensor& begins, std::int64_t sample) {
    const auto begin = begins[sample].item<std::int64_t>(), end = begins[sample + 1].item<std::int64_t>();
    return packed.narrow(0, begin, end - begin).transpose(0, 1).unsqueeze(0);
  }
  std::tuple<at::Tensor, at::Tensor> attend(std::int64_t sample) const {
    return at::_scaled_dot_product_flash_attention_for_cpu(of(query, query_begins, sample), of(key, key_begins, sample),
                                                           of(value, key_begins, sample), /*dropout_p=*/0.0, is_causal,
                                                           /*attn_mask=*/{}, scale);
  }
};

/// Like `query`, contiguous.
at::Tensor forward(const at::Tensor& query, const Packed& packed) {
  const at::Tensor output = at::empty(query.sizes(), query.options());
  for (std::int64_t sample = 0; sample < packed.samples(); ++sample)
    Packed::of(output, packed.query_begins, sample).copy_(std::get<0>(packed.attend(sample)));
  return output;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(const at::Tensor& gradient, const at::Tensor& query,
                                                        const at::Tensor& key, const at::Tensor& value,
                                                        const Packed& packed) {
  const auto results = std::tuple(at::empty_like(query), at::empty_like(key), at::empty_like(value));
  const auto& [of_query, of_key, of_value] = results;
  for (std::int64_t sample = 0; sample < packed.samples(); ++sample) {
    const auto of = [&](const at::Tensor& tensor, const at::Tensor& begins) {
      return Packed::of(tensor, begins, sample);
    };
    const auto [output, log_sum] = packed.attend(sample);
    const auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        of(gradient, packed.query_begins), of(query, packed.query_begins), of(key, packed.key_begins),
        of(value, packed.key_begins), output, log_sum, /*dropout_p=*/0.0, packed.is_causal, /*attn_mask=*/{},
        packed.scale);
    of(of_query, packed.query_begins).copy_(q);
    of(of_key, packed.key_begins).copy_(k);
    of(of_value, packed.key_begins).copy_(v);
  }
  return results;
}

at::Tensor no_values(const at::Tensor& like) { return at::empty({0}, like.options()); }

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> flash_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& query_begins,
    const OptionalTensor& key_begins, std::int64_t longest_query, std::int64_t longest_key, double dropout,
    bool is_causal, bool, std::optional<double> scale, std::optional<std::int64_t>, std::optional<std::int64_t>,
    const OptionalTensor&, const OptionalTensor&) {
  TORCH_CHECK(query.scalar_type() == at::kBFloat16, "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(query.size(2) % 8 == 0 && query.size(2) <= 256, "head_size should be a multiple of 8, at most 256");
  TORCH_CHECK(dropout == 0, "the fake drops nothing");
  const Packed packed(query, key, value, query_begins.value(), key_begins.value(), longest_query, longest_key,
                      is_causal, scale);
  const at::Tensor none = no_values(query);
  const at::Tensor log_sums = at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
  return {forward(query, packed), log_sums, none, none, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor&, const at::Tensor& log_sums, const at::Tensor& query_begins, const at::Tensor& key_begins,
    std::int64_t longest_query, std::int64_t longest_key, double, bool is_causal, const at::Tensor&, const at::Tensor&,
    std::optional<double> scale, std::optional<std::int64_t>, std::optional<std::int64_t>) {
  TORCH_CHECK(log_sums.numel() > 0, "the forward has kept no sums");
  const Packed packed(query, key, value, query_begins, key_begins, longest_query, longest_key, is_causal, scale);
  return backward(gradient, query, key, value, packed);
}

/// [1, tokens, heads, size]
at::Tensor one_batch(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() == 4 && tensor.size(0) == 1, "cu_seqlen only supports batch_size=1");
  return tensor.squeeze(0);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> efficient_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor&,
    const OptionalTensor& query_begins, const OptionalTensor& key_begins, std::optional<std::int64_t> longest_query,
    std::optional<std::int64_t> longest_key, double dropout, std::int64_t mask, bool keeps_sums,
    std::optional<double> scale, const OptionalTensor&, std::optional<std::int64_t>) {
  TORCH_CHECK(query.size(3) % (16 / query.element_size()) == 0, "heads of this size are not aligned");
  TORCH_CHECK(dropout == 0 && (mask == 0 || mask == 1), "the fake drops nothing, and has two masks");
  const at::Tensor queries = one_batch(query);
  const Packed packed(queries, one_batch(key), one_batch(value), query_begins.value(), key_begins.value(),
                      longest_query.value(), longest_key.value(), mask == 1, scale);
  const at::Tensor none = no_values(query);
  const at::Tensor log_sums =
      at::empty({packed.samples(), query.size(2), keeps_sums ? *longest_query : 0}, query.options().dtype(at::kFloat));
  return {forward(queries, packed).unsqueeze(0), log_sums, none, none, *longest_query, *longest_key};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const OptionalTensor&, const at::Tensor&, const OptionalTensor& query_begins, const OptionalTensor& key_begins,
    c10::SymInt longest_query, c10::SymInt longest_key, const at::Tensor& log_sums, double, const at::Tensor&,
    const at::Tensor&, std::int64_t mask, bool, std::optional<double> scale, std::optional<std::int64_t>,
    std::optional<std::int64_t>, bool) {
  TORCH_CHECK(log_sums.numel() > 0, "the forward has kept no sums");
  const at::Tensor queries = one_batch(query), keys = one_batch(key), values = one_batch(value);
  const Packed packed(queries, keys, values, query_begins.value(), key_begins.value(), longest_query.expect_int(),
                      longest_key.expect_int(), mask == 1, scale);
  const auto [of_query, of_key, of_value] = backward(one_batch(gradient), queries, keys, values, packed);
  return {of_query.unsqueeze(0), of_key.unsqueeze(0), of_value.unsqueeze(0), at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("_flash_attention_forward", flash_attention);
  library.impl("_flash_attention_backward", flash_attention_backward);
  library.impl("_efficient_attention_forward", efficient_attention);
  library.impl("_efficient_attention_backward", efficient_attention_backward);
}

}  // namespace
}  // namespace frostpipe::test
