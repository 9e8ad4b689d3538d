#include "profiles/optimizer.h"

#include "base/enum_words.h"

namespace frostpipe {
namespace {

struct OptimizerRow {
  Optimizer value;
  std::string_view word;
  int moments;
};

constexpr std::array kOptimizers{OptimizerRow{Optimizer::kAdamW, "adamw", 2}, OptimizerRow{Optimizer::kSgd, "sgd", 0}};

}  // namespace

std::string_view to_string(Optimizer optimizer) { return word_of(kOptimizers, optimizer); }

std::optional<Optimizer> find_optimizer(std::string_view word) { return value_of(kOptimizers, word); }

void parse_text(std::string_view text, const std::string& place, Optimizer& optimizer) {
  optimizer = parse_word(kOptimizers, text, place, "must be adamw or sgd");
}

int optimizer_moments(Optimizer optimizer) { return row_of(kOptimizers, optimizer).moments; }

}  // namespace frostpipe
