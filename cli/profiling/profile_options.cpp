#include "cli/profiling/profile_options.h"

#include <CLI/CLI.hpp>

#include "cli/shared/common_options.h"
#include "profiles/device_type.h"
#include "profiles/estimates/known_models.h"

namespace frostpipe {
namespace {

CLI::Option* add_model(CLI::App& command, ProfileOptions& options) {
  return command.add_option("--model", options.model, "Hugging Face folder of a BERT, ViT or GPT-2 model")
      ->type_name("FOLDER");
}

/// What a profile can be made of where nothing is measured.
void add_sources_without_measuring(CLI::App& command, ProfileOptions& options) {
  command
      .add_option("--like", options.like,
                  "Measure nothing, estimate from counted operations, for what-ifs and rehearsals: a Hugging Face "
                  "config.json or its folder, or " +
                      known_model_names())
      ->type_name("NAME");
  command
      .add_option("--hardware", options.hardware,
                  "With --like: RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200 or a file; default: 8 TFLOP/s GPUs. "
                  "Links are PCIe and 40 Gbit/s. With --operators: several, with commas between them")
      ->type_name("NAME");
  command.add_flag(
      "--operators", options.operators,
      "A mini-batch's operators on unequal devices, for plan --method mtrain: with --like resnet-18, resnet-50, "
      "vgg-16-bn or mobilenet and --hardware NAME[,NAME] estimated; with --model FOLDER of a ResNet, VGG "
      "or MobileNet and --hardware \"cpu,cpu / 2\" measured");
  add_count_option(command, "--picture-size", options.picture_size,
                   "With --operators --like: pixels of a side of the square pictures; default: 224")
      ->check(CLI::Range(1, 4096).description(""));
  add_count_option(command, "--num-classes", options.num_classes,
                   "With --operators --like: labels of the pictures; default: 1000");
  command
      .add_option("--import", options.graph,
                  "Measure nothing, read layers that others measured: a graph of PipeDream or DAPPLE, Piper's or "
                  "Sailor's JSON, a table of microseconds by block and batch size")
      ->type_name("FILE");
  add_count_option(command, "--import-samples", options.graph_samples,
                   "With --import: samples that the graph's times and sizes are of");
  add_count_option(command, "--samples", options.estimate.num_samples, "With --like and --import: training samples");
  command
      .add_option("--nodes", options.num_nodes,
                  "With --like and --import: machines, each with --nproc-per-node devices; default: 1")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_counts_option(command, "--tensor-parallel", options.estimate.tensor_parallel_sizes,
                    "Numbers of ranks that share each layer, to measure (each divides --nproc-per-node) or, with "
                    "--like, to estimate");
  add_count_option(command, "--expert-parallel", options.estimate.expert_parallel_size,
                   "With --like of a mixture of experts: replicas that share out the experts of each layer");
  command.add_flag("--sequence-parallel", options.estimate.sequence_parallel,
                   "With --tensor-parallel: such ranks also as they split activations between matrices by tokens");
}

void add_files(CLI::App& command, ProfileOptions& options) {
  command.add_option("-o,--output", options.output, "Profile to write")->required()->type_name("PROFILE");
  command.add_option("--cluster", options.cluster, "Also write the ranks and their links")->type_name("FILE");
  command.add_option("--data", options.data, "Data of the run to plan, as train takes it: its length and lengths")
      ->type_name("DATA");
  add_sample_options(command, options.measure.samples);
  add_record_options(command, options.measure.samples);
  add_count_option(command, "--global-batch", options.measure.global_batch_size, "Samples per optimizer step");
}

void add_ranks(CLI::App& command, ProfileOptions& options, CLI::Option* model) {
  add_count_option(command, "--nproc-per-node", options.num_ranks,
                   "Ranks to start, which all measure at the same time; with --like and --import: devices of each node")
      ->check(CLI::Range(1, 1024).description(""));
  command
      .add_option("--threads-per-rank", options.measure.threads_per_rank,
                  "Threads that each rank computes with on the CPU; default: one, and then fewer ranks with several "
                  "each on the same cores, so that plan can choose")
      ->check(CLI::Range(1, kMostThreads).description(""))
      ->type_name("N")
      ->needs(model);
  command
      .add_option("--memory-limit", options.memory_limit, "Limit on each rank's tensors, for the cluster file: 384MiB")
      ->check(CLI::Validator(check_bytes, ""))
      ->type_name("SIZE");
}

void add_sizes(CLI::App& command, ProfileOptions& options, CLI::Option* model) {
  command
      .add_flag("--quick", options.measure.quick,
                "Measure fewer sizes (powers of 8), once each: a first look in a fraction of the time, with rough "
                "predictions")
      ->needs(model);
  add_counts_option(command, "--micro-batch-sizes", options.measure.micro_batch_sizes,
                    "Sizes to measure; default: powers of two up to the mini-batch");
  add_counts_option(command, "--tokens", options.measure.tokens,
                    "Mean lengths to measure; default: the data's, and one towards the longest");
}

/// What training will test on, which is not measured.
void add_held_out_data(CLI::App& command, ProfileOptions& options) {
  command
      .add_option("--test-data", options.measure.test_data,
                  "The file that training will test on, instead of a part of --data")
      ->type_name("DATA");
  command.add_option("--held-out", options.measure.held_out, "Fraction of the data that training will test on")
      ->check(finite_range(0, 0.99))
      ->capture_default_str();
  add_seed_option(command, options.measure.seed);
}

void add_dtypes(CLI::App& command, ProfileOptions& options, CLI::Option* model) {
  add_dtype_option(
      command, "--dtype", [&](DType dtype) { options.measure.dtype = dtype; },
      "float32, or bfloat16 with weights kept in float32: what plans of this profile compute in")
      ->type_name("TYPE")
      ->default_str(std::string(to_string(options.measure.dtype)));
  add_dtype_option(
      command, "--frozen-dtype", [&](DType dtype) { options.measure.frozen_dtype = dtype; },
      "What frozen layers compute in: --dtype's type, which is the default, or bfloat16 with weights "
      "rounded when they freeze. Plans of this profile and their runs follow")
      ->type_name("TYPE")
      ->needs(model);
}

}  // namespace

void add_profile_options(CLI::App& command, ProfileOptions& options) {
  CLI::Option* const model = add_model(command, options);
  add_sources_without_measuring(command, options);
  add_files(command, options);
  add_ranks(command, options, model);
  add_sizes(command, options, model);
  add_held_out_data(command, options);
  add_dtypes(command, options, model);
  add_device_option(command, options.measure.device);
  add_interface_option(command, options.interface);
  add_format_option(command, options.format);
  command.footer(
      "Under torchrun --no-python, srun or mpirun it uses the ranks that they have started.\n\n"
      "Example:\n  frostpipe profile --model minilm/ --data sections.tsv --memory-limit 384MiB --cluster cluster.json "
      "-o profile.json");
}

}  // namespace frostpipe
