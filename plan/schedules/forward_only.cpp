#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

Schedule forward_only(const std::vector<int>& pipeline_rank_of_stage, int num_micro_batches) {
  const int stages = static_cast<int>(pipeline_rank_of_stage.size());
  const int p = *std::max_element(pipeline_rank_of_stage.begin(), pipeline_rank_of_stage.end()) + 1;
  Schedule schedule{.name = "forward only",
                    .num_micro_batches = num_micro_batches,
                    .first_trainable_stage = stages,
                    .pipeline_rank_of_stage = pipeline_rank_of_stage,
                    .prologue = {},
                    .body = std::vector<std::vector<Action>>(p),
                    .epilogue = {}};
  std::vector<int> done(stages, 0);  // micro-batches done, by stage
  while (done.back() < num_micro_batches) {
    std::vector<int> chosen(p, -1);  // by pipeline rank, the stage with the oldest micro-batch whose input is there
    for (int stage = 0; stage < stages; ++stage) {
      const int available = stage == 0 ? num_micro_batches : done[stage - 1];
      int& best = chosen[pipeline_rank_of_stage[stage]];
      if (done[stage] < available && (best < 0 || done[stage] < done[best])) best = stage;
    }
    for (int rank = 0; rank < p; ++rank)
      if (chosen[rank] >= 0) schedule.body[rank].push_back(forward(chosen[rank], done[chosen[rank]]));
    for (const int stage : chosen)
      if (stage >= 0) ++done[stage];
  }
  return schedule;
}

}  // namespace frostpipe
