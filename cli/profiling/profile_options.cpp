#include "cli/profiling/profile_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/shared/common_options.h"
#include "cli/shared/help_format.h"
#include "profiles/device_type.h"
#include "profiles/estimates/known_models.h"

namespace frostpipe {
namespace {

/// The options that say where a profile comes from. Exactly one is given.
struct Sources {
  CLI::Option *model, *like, *import;
};

Sources add_sources(CLI::App& command, ProfileOptions& options) {
  CLI::Option* const model =
      command.add_option("--model", options.model, "Hugging Face folder of a model to measure on this machine")
          ->type_name("FOLDER");
  CLI::Option* const like = command
                                .add_option("--like", options.like,
                                            "Estimate from counted operations, and measure nothing: a Hugging Face "
                                            "config.json or its folder, or " +
                                                known_model_names())
                                ->type_name("NAME")
                                ->excludes(model);
  CLI::Option* const import =
      command
          .add_option(
              "--import", options.graph,
              "Read layers that others measured, and measure nothing: a graph of PipeDream or DAPPLE, Piper's or "
              "Sailor's JSON, a table of microseconds by block and batch size")
          ->type_name("FILE")
          ->excludes(model)
          ->excludes(like);
  return {model, like, import};
}

void add_files(CLI::App& command, ProfileOptions& options) {
  command.add_option("-o,--output", options.output, "Profile to write")->required()->type_name("PROFILE");
  CLI::Option* const cluster =
      command.add_option("--cluster", options.cluster, "Also write the ranks and their links to this file")
          ->type_name("FILE");
  command
      .add_option("--memory-limit", options.memory_limit,
                  "Limit on the tensors of each rank, such as 384MiB, to write into the cluster file")
      ->check(CLI::Validator(check_bytes, ""))
      ->type_name("SIZE")
      ->needs(cluster);
}

void add_estimate_options(CLI::App& command, ProfileOptions& options, const Sources& from) {
  command
      .add_option(
          "--hardware", options.hardware,
          fmt::format("Devices to estimate for: {} or a file, with the links that they have in servers. Default: "
                      "GPUs of 8 TFLOP/s, PCIe and 40 Gbit/s",
                      known_hardware_names()))
      ->type_name("NAME")
      ->needs(from.like);
  add_count_option(command, "--samples", options.estimate.num_samples, "Number of training samples to estimate for")
      ->excludes(from.model);
  command.add_option("--nodes", options.num_nodes, "Number of machines, each with --nproc-per-node devices")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N")
      ->capture_default_str()
      ->excludes(from.model);
  add_count_option(command, "--expert-parallel", options.estimate.expert_parallel_size,
                   "Number of replicas over which the experts of each layer are distributed")
      ->needs(from.like);
  add_count_option(command, "--import-samples", options.graph_samples,
                   "Number of samples to which the imported times and sizes refer")
      ->needs(from.import);
}

void add_data(CLI::App& command, ProfileOptions& options, const Sources& from) {
  command.add_option("--data", options.data, "Data that the run will train on, as train takes it")
      ->type_name("DATA")
      ->needs(from.model);
  add_sample_options(command, options.measure.samples);
  add_record_options(command, options.measure.samples);
  command.add_option("--test-data", options.measure.test_data, "Data that the run will test on, as for train")
      ->type_name("DATA");
  command.add_option("--held-out", options.measure.held_out, "Fraction of --data that the run will test on")
      ->check(finite_range(0, 0.99))
      ->type_name("X")
      ->capture_default_str();
  add_seed_option(command, options.measure.seed);
  for (const char* const name : {"--max-tokens", "--window-overlap", "--text-column", "--label-column", "--loss-on",
                                 "--test-data", "--held-out", "--seed"})
    command.get_option(name)->needs(from.model);
}

void add_ranks(CLI::App& command, ProfileOptions& options, const Sources& from) {
  add_count_option(command, "--nproc-per-node", options.num_ranks,
                   "Number of ranks to start, which all measure at the same time; or of emulated devices per node")
      ->check(CLI::Range(1, 1024).description(""));
  command
      .add_option("--threads-per-rank", options.measure.threads_per_rank,
                  "Number of threads that each rank computes with on the CPU. Default: one, and then fewer ranks with "
                  "several each on the same cores, so that plan can choose")
      ->check(CLI::Range(1, kMaxThreads).description(""))
      ->type_name("N")
      ->needs(from.model);
  CLI::Option* const tensor_parallel =
      add_counts_option(command, "--tensor-parallel", options.estimate.tensor_parallel_sizes,
                        "Numbers of ranks that share each layer; each divides --nproc-per-node")
          ->excludes(from.import);
  command
      .add_flag("--sequence-parallel", options.estimate.sequence_parallel,
                "Also measure the ranks of --tensor-parallel when they split activations between matrices by tokens")
      ->needs(tensor_parallel);
  add_device_option(command, options.measure.device);
  add_interface_option(command, options.interface);
  for (const char* const name : {"--device", "--interface"}) command.get_option(name)->needs(from.model);
}

void add_sizes(CLI::App& command, ProfileOptions& options, const Sources& from) {
  add_count_option(command, "--global-batch", options.measure.global_batch_size,
                   "Number of samples in a mini-batch, over all ranks");
  command
      .add_flag("--quick", options.measure.quick, "Measure fewer sizes, once each: faster, but predictions are rough")
      ->needs(from.model);
  add_counts_option(command, "--micro-batch-sizes", options.measure.micro_batch_sizes,
                    "Sizes to measure. Default: powers of two up to the mini-batch")
      ->needs(from.model);
  add_counts_option(command, "--tokens", options.measure.tokens,
                    "Mean lengths of samples to measure. Default: that of the data, and one towards the longest")
      ->excludes(from.import);
  add_dtype_option(
      command, "--dtype", [&](DType dtype) { options.measure.dtype = dtype; },
      "Type to compute in: float32, or bfloat16 with weights kept in float32. Plans made from this profile, "
      "and their runs, use the same type")
      ->type_name("TYPE")
      ->default_str(std::string(to_string(options.measure.dtype)))
      ->excludes(from.import);
  add_dtype_option(
      command, "--frozen-dtype", [&](DType dtype) { options.measure.frozen_dtype = dtype; },
      "Type that frozen layers compute in: bfloat16 rounds their weights when they freeze. Default: that of --dtype")
      ->type_name("TYPE")
      ->needs(from.model);
}

}  // namespace

void add_profile_options(CLI::App& command, ProfileOptions& options) {
  const Sources from = add_sources(command, options);
  add_files(command, options);
  add_data(command, options, from);
  add_sizes(command, options, from);
  add_ranks(command, options, from);
  add_estimate_options(command, options, from);
  add_format_option(command, options.format);
  show_first(command, {"--model", "--like", "--cluster", "--memory-limit", "--data", "--max-tokens", "--test-data",
                       "--global-batch", "--nproc-per-node", "--quick", "--dtype", "--device", "--hardware",
                       "--samples", "--format"});
  command.footer(
      "Under torchrun --no-python, srun or mpirun it uses the ranks that they have started.\n\n"
      "Examples:\n  frostpipe profile --model minilm/ --data sections.tsv --memory-limit 384MiB --cluster cluster.json "
      "-o profile.json\n"
      "  frostpipe profile --like bert-large --hardware A100 --nproc-per-node 8 --cluster gpus.json -o bert.json");
}

}  // namespace frostpipe
