#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// One net on one cluster: the plan, its bound, and the baselines.
struct MTrainRow {
  std::string net;
  int num_devices = 0;
  double speed_ratio = 1;  // fastest to slowest device; the factor from each device to the next is constant
  double link_gigabytes_per_second = 0;
  Nanoseconds planned_ns = 0, lower_bound_ns = 0;
  std::vector<Nanoseconds> baseline_ns;  // in the order of kOperatorBaselines
  double speedup() const;                // best baseline's time / planned time
};

/// Returns the rows of ResNet-18, -50, VGG-16-BN and MobileNet with 64 pictures on 2, 4 and 8 devices, whose fastest
/// has 8 TFLOP/s and 448 GB/s. Speed ratios are 1, 2, 4 and 8; the link of every pair has 1, 5, 15 or 60 GB/s and a
/// latency of 10 us.
std::vector<MTrainRow> mtrain_rows();

/// Returns the rows as a table ("text") or as a file "frostpipe.mtrain_bench" ("json").
std::string mtrain_text(const std::vector<MTrainRow>& rows, const std::string& format);

}  // namespace frostpipe
