#include "serving/planner/sized_plan.h"

namespace frostpipe {
namespace {

ServingPartition partition_of(const ServingProblem& problem, const ServingProfile& profile,
                              const CandidatePipeline& candidate, std::size_t place, int size) {
  const CandidatePool& pool = candidate.pools[place];
  const DeviceClass& device_class = problem.classes[pool.device_class];
  ServingPartition partition{.first_block = pool.first_block,
                             .end_block = pool.end_block,
                             .device_class = device_class.name,
                             .share = pool.share,
                             .num_virtual_devices = size,
                             .requests_per_second = pool.requests_per_second * size};
  const BlockTimes& times = *find_times(profile, device_class.name, pool.share);
  for (int b = 0; b < candidate.batch_size; ++b) {
    Nanoseconds compute = 0;
    for (int block = pool.first_block; block < pool.end_block; ++block) compute += times.forward_ns[block][b];
    partition.compute_ns.push_back(compute);
  }
  if (place == 0) return partition;
  partition.input_bytes = profile.cut_bytes[pool.first_block - 1];
  partition.transfer_ns =
      transfer_ns(problem.classes[candidate.pools[place - 1].device_class], device_class, partition.input_bytes);
  partition.latency_ns = problem.latency_ns;
  return partition;
}

Partition blocks_of(const ServingProfile& profile) {
  Partition blocks;
  int begin = 0;
  for (const int end : profile.block_ends) {
    blocks.push_back({begin, end});
    begin = end;
  }
  return blocks;
}

}  // namespace

ServingPlan plan_of(const ServingProblem& problem, const std::vector<double>& building, const SizedPlan& sized) {
  ServingPlan plan{.objective = problem.objective,
                   .dtype = problem.dtype,
                   .margins = problem.margins,
                   .device_classes = problem.classes,
                   .objective_value = sized.sizes.value,
                   .objective_bound = sized.sizes.bound};
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    const ModelToServe& model = problem.models[n];
    ServedModel served{.name = model.name,
                       .weight = model.weight,
                       .objective_ns = model.objective_ns,
                       .tokens = model.profile.tokens,
                       .required_requests_per_second = model.required_requests_per_second,
                       .building_requests_per_second = building[n],
                       .blocks = blocks_of(model.profile),
                       .shared_prefix = model.shared_prefix,
                       .provenance = model.provenance};
    for (const auto& [index, sizes] : sized.sizes.pipelines[n]) {
      const CandidatePipeline& candidate = sized.pools.models[n].candidates[index];
      ServingPipeline pipeline{.batch_size = candidate.batch_size,
                               .batch_building_ns = candidate.batch_building_ns,
                               .requests_per_second = requests_per_second(candidate, sizes)};
      for (std::size_t place = 0; place < sizes.size(); ++place)
        pipeline.partitions.push_back(partition_of(problem, model.profile, candidate, place, sizes[place]));
      served.requests_per_second += pipeline.requests_per_second;
      served.pipelines.push_back(std::move(pipeline));
    }
    plan.models.push_back(std::move(served));
  }
  return plan;
}

}  // namespace frostpipe
