#include "cli/program/former_options.h"

#include <algorithm>

namespace frostpipe {
namespace {

struct FormerOption {
  std::string_view command, option, successor;
};

constexpr std::string_view kInPlan = "the plan says it", kComputeTimes = "use --compute-ms F,I,W",
                           kMessageTime = "use --message-ms X", kColumnOfTimes = "name the column TIMESTAMP",
                           kInConfig = "use --like with a config.json that says it";
constexpr FormerOption kFormerOptions[] = {
    {"serve", "", "use 'frostpipe serving run'"},
    {"profile", "--operators", "use 'frostpipe nets profile'"},
    {"plan", "--pp", "use --fix pp=P"},
    {"plan", "--tp", "use --fix tp=T"},
    {"plan", "--cache-memory", "use --cache SIZE"},
    {"plan", "--partitioner", "use --method pipetransformer-published"},
    {"plan", "--freeze-warm-up", "use --freeze-set warm-up=X"},
    {"plan", "--freeze-interval", "use --freeze-set interval=X"},
    {"plan", "--freeze-alpha", "use --freeze-set alpha=X"},
    {"plan", "--freeze-threshold", "use --freeze-set threshold=X"},
    {"train", "--freeze-warm-up", "use --freeze-set warm-up=X"},
    {"train", "--freeze-interval", "use --freeze-set interval=X"},
    {"train", "--freeze-alpha", "use --freeze-set alpha=X"},
    {"train", "--freeze-threshold", "use --freeze-set threshold=X"},
    {"plan", "--objective", "use 'frostpipe serving plan --required-rate'"},
    {"simulate", "--schedule", "use 'frostpipe schedule NAME --format times'"},
    {"schedule", "--forward-ms", kComputeTimes},
    {"schedule", "--backward-input-ms", kComputeTimes},
    {"schedule", "--backward-weight-ms", kComputeTimes},
    {"schedule", "--activation-bytes", kMessageTime},
    {"schedule", "--bandwidth-gbytes-per-second", kMessageTime},
    {"schedule", "--split-overlap", "overlapped pairs always run together"},
    {"schedule", "--weight-gradient-share", "the schedule determines it"},
    {"launch", "--slurm", "use launch slurm PLAN"},
    {"launch", "--torchrun", "use launch torchrun PLAN"},
    {"launch", "--mpirun", "use launch mpirun PLAN"},
    {"launch", "--by-hand", "use launch by-hand PLAN"},
    {"nets profile", "--picture-size", kInConfig},
    {"nets profile", "--num-classes", kInConfig},
    {"serving simulate", "--load-factor", "use --rate xF"},
    {"serving run", "--load-factor", "use --rate xF"},
    {"serving simulate", "--arrivals-column", kColumnOfTimes},
    {"serving run", "--arrivals-column", kColumnOfTimes},
    {"serving plan", "--shared-layers", "use --heads K,N"},
    {"serving run", "--emulate", "use --device emulated"},
    {"serving run", "--threads-per-worker", "the plan's device class says it"},
    {"serving run", "--head", "use --model NAME=FOLDER"},
    {"train", "--max-tokens", kInPlan},
    {"train", "--window-overlap", kInPlan},
    {"train", "--nproc-per-node", kInPlan},
    {"train", "--threads-per-rank", "the plan says it (plan --threads-per-rank)"},
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
