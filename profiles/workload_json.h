#pragma once
// Implementation header: JSON keys of Workload, for profile_json.cpp and plan.cpp. Include it from .cpp files only.
#include "base/json_reader.h"
#include "profiles/profile.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Workload>& workload) {
  archive("name", workload.name);
  archive("num_samples", workload.num_samples, json::at_least(0));
  archive("tokens", workload.tokens, json::between(1, json::kMaxTokens));
  archive("tokens_deviation", workload.tokens_deviation, json::between(0, json::kMaxTokens));
  archive("longest_tokens", workload.longest_tokens, json::between(1, json::kMaxTokens));
  int mean_rounded_up = 0;  // read for older files; never written
  archive("mean_tokens", mean_rounded_up, json::MayBeMissing{json::between(0, json::kMaxTokens)});
  archive("global_batch_size", workload.global_batch_size, json::between(1, json::kMaxSamples));
  archive("max_tokens", workload.max_tokens, json::between(2, json::kMaxTokens));
  archive("window_overlap", workload.window_overlap, json::between(0, json::kMaxTokens));
}

}  // namespace frostpipe
