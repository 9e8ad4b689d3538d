#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/text/token_spans.h"
#include "tests/support/reference_data.h"

namespace frostpipe::test {

/// `list`: a list of squad_reference.json, with texts and transformers' tokens and spans.
inline void expect_spans_of_transformers(const auto& tokenizer, const char* list) {
  const nlohmann::json& cases = reference_data("squad_reference.json").at(list);
  EXPECT_GE(cases.size(), 60u);
  for (const nlohmann::json& one : cases) {
    const SpannedTokens tokens = tokenizer.encode_with_spans(text_of(one));
    EXPECT_EQ(tokens.ids, one.at("ids").get<std::vector<std::int32_t>>()) << one.at("name");
    std::vector<std::pair<int, int>> spans;
    for (const TokenSpan& span : tokens.spans) spans.emplace_back(span.begin, span.end);
    EXPECT_EQ(spans, (one.at("spans").get<std::vector<std::pair<int, int>>>())) << one.at("name");
  }
}

}  // namespace frostpipe::test
