#include "cli/program/former_options.h"

#include <algorithm>

namespace frostpipe {
namespace {

struct FormerOption {
  std::string_view command, option, successor;
};

constexpr std::string_view kInPlan = "the plan says it";
constexpr FormerOption kFormerOptions[] = {{"serve", "", "use 'frostpipe serving run'"},
                                           {"profile", "--operators", "use 'frostpipe nets profile'"},
                                           {"plan", "--pp", "use --fix pp=P"},
                                           {"plan", "--tp", "use --fix tp=T"},
                                           {"plan", "--cache-memory", "use --cache SIZE"},
                                           {"plan", "--partitioner", "use --method pipetransformer-published"},
                                           {"plan", "--objective", "use 'frostpipe serving plan --required-rate'"},
                                           {"simulate", "--schedule", "use 'frostpipe schedule NAME --format times'"},
                                           {"train", "--max-tokens", kInPlan},
                                           {"train", "--window-overlap", kInPlan},
                                           {"train", "--nproc-per-node", kInPlan},
                                           {"train", "--epochs", "the plan says it (plan --epochs)"},
                                           {"train", "--checkpoint-steps", "use --checkpoint-every N"},
                                           {"train", "--checkpoint-minutes", "use --checkpoint-every TIME"}};

}  // namespace

std::string successor_of(std::string_view command, std::string_view option) {
  const auto is_this = [&](const FormerOption& one) { return one.command == command && one.option == option; };
  const auto* const found = std::ranges::find_if(kFormerOptions, is_this);
  return found == std::end(kFormerOptions) ? "" : std::string(found->successor);
}

}  // namespace frostpipe
