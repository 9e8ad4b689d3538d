#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// One net on one cluster: the plan, its bound, and the baselines.
struct MTrainRow {
  std::string net;
  int num_devices = 0;
  double speed_ratio = 1;  // of the fastest device to the slowest; the others have equal factors in between
  double link_gigabytes_per_second = 0;
  Nanoseconds planned_ns = 0, lower_bound_ns = 0;
  std::vector<Nanoseconds> baseline_ns;  // in the order of kOperatorBaselines
  double speedup() const;                // over the best baseline
};

/// ResNet-18, -50, VGG-16-BN and MobileNet with 64 pictures on 2, 4 and 8 devices, the fastest of 8 TFLOP/s and 448
/// GB/s, with speeds up to 1, 2, 4 and 8 times the slowest's, and links of 1, 5, 15 and 60 GB/s and 10 us for every
/// pair.
std::vector<MTrainRow> mtrain_rows();

/// "text" or "json" ("frostpipe.mtrain_bench").
std::string mtrain_text(const std::vector<MTrainRow>& rows, const std::string& format);

}  // namespace frostpipe
