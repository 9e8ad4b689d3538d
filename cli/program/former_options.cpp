#include "cli/program/former_options.h"

#include <algorithm>

namespace frostpipe {
namespace {

struct FormerOption {
  std::string_view command, option, successor;
};

constexpr std::string_view kInPlan = "the plan says it", kComputeTimes = "use --compute-ms F,I,W",
                           kMessageTime = "use --message-ms X", kColumnOfTimes = "name the column TIMESTAMP",
                           kInConfig = "use --like with a config.json that says it",
                           kBatch = "use plan --global-batch N, the samples of a step",
                           kMicroBatches = "use plan --fix m=N, the micro-batches of a step",
                           kPrecision = "use profile --dtype bfloat16", kModelFolder = "use --model FOLDER";
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
    {"train", "--checkpoint-minutes", "use --checkpoint-every TIME"},
    // names in other tools
    {"train", "--lr", "use --learning-rate"},
    {"train", "--warmup-steps", "use --learning-rate-warm-up"},
    {"train", "--warmup-ratio", "use --learning-rate-warm-up"},
    {"train", "--lr-scheduler-type", "use --decay"},
    {"train", "--max-grad-norm", "use --gradient-clip"},
    {"train", "--num-train-epochs", "the plan says it (plan --epochs)"},
    {"train", "--save-steps", "use --checkpoint-every N"},
    {"train", "--output-dir", "use -o RUN"},
    {"train", "--resume-from-checkpoint", "use --resume"},
    {"train", "--batch-size", kBatch},
    {"profile", "--batch-size", kBatch},
    {"plan", "--batch-size", kBatch},
    {"train", "--per-device-train-batch-size", kBatch},
    {"profile", "--per-device-train-batch-size", kBatch},
    {"plan", "--per-device-train-batch-size", kBatch},
    {"train", "--gradient-accumulation-steps", kMicroBatches},
    {"profile", "--gradient-accumulation-steps", kMicroBatches},
    {"plan", "--gradient-accumulation-steps", kMicroBatches},
    {"train", "--bf16", kPrecision},
    {"profile", "--bf16", kPrecision},
    {"plan", "--bf16", kPrecision},
    {"train", "--model-name-or-path", kModelFolder},
    {"profile", "--model-name-or-path", kModelFolder}};

}  // namespace

std::string successor_of(std::string_view command, std::string_view option) {
  std::string dashed(option);
  std::ranges::replace(dashed, '_', '-');
  const auto is_this = [&](const FormerOption& one) { return one.command == command && one.option == dashed; };
  const auto* const found = std::ranges::find_if(kFormerOptions, is_this);
  return found == std::end(kFormerOptions) ? "" : std::string(found->successor);
}

}  // namespace frostpipe
