#include "cli/plans/estimated_source.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "profiles/estimates/known_models.h"
#include "profiles/hardware.h"

namespace frostpipe {

CLI::Option* add_estimated_source(CLI::App& command, EstimatedSource& source) {
  CLI::Option* const model =
      command
          .add_option("--model", source.model,
                      "Estimate profile and cluster from counted operations instead of reading them: a Hugging Face "
                      "config.json or its folder, or a name such as llama-3-8b; see 'frostpipe profile --help'")
          ->type_name("NAME");
  command
      .add_option("--hardware", source.hardware,
                  "With --model: a GPU named in 'frostpipe profile --help-all', or a file")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(model);
  add_count_option(command, "--nodes", source.num_nodes, "With --model: number of machines")
      ->check(CLI::Range(1, 8192).description(""))
      ->needs(model);
  add_count_option(command, "--nproc-per-node", source.devices_per_node, "With --model: number of devices of each")
      ->check(CLI::Range(1, 1024).description(""))
      ->needs(model);
  add_dtype_option(
      command, "--dtype", [&source](DType dtype) { source.dtype = dtype; },
      "With --model: type to compute in, float32 or bfloat16 with weights kept in float32. Default: bfloat16, or "
      "float32 on RTX5000, RTX2080Ti and V100, which lack it")
      ->type_name("TYPE")
      ->needs(model);
  return model;
}

Estimate estimate_of(const EstimatedSource& source, int tokens, int global_batch_size, bool sequence_parallel) {
  const EstimatedModel model = find_model(source.model, tokens);
  const Hardware hardware = hardware_named(source.hardware);
  const DType dtype = source.dtype.value_or(hardware.lacks_bfloat16 ? DType::kFloat32 : DType::kBFloat16);
  if (dtype == DType::kBFloat16 && hardware.lacks_bfloat16)
    print_note(fmt::format("{} lacks bfloat16: times are those of float16, which train does not offer", hardware.name));
  EstimateOptions options{.num_nodes = source.num_nodes,
                          .ranks_per_node = source.devices_per_node,
                          .global_batch_size = global_batch_size,
                          .sequence_parallel = sequence_parallel,
                          .dtype = dtype};
  apply(hardware, options);
  const auto share_layers = [&](int ranks) {
    return source.devices_per_node % ranks == 0 && model.config.num_attention_heads % ranks == 0 &&
           ranks <= max_tensor_ranks(model.config);
  };
  for (int ranks = 2; share_layers(ranks); ranks *= 2) options.tensor_parallel_sizes.push_back(ranks);
  return estimate(model, options);
}

}  // namespace frostpipe
