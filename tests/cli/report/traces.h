#pragma once
#include "plan/trace.h"

namespace frostpipe::test {

/// Two ranks: 0F0 from 0 to 4 ms and its message until 6 ms, then 1F0 on rank 1 from 6 to 10 ms.
inline Trace two_rank_trace() {
  return {
      .num_ranks = 2,
      .spans =
          {{.rank = 0, .step = 0, .action = parse_action("0F0", ""), .begin_ns = 0, .end_ns = 4'000'000},
           {.rank = 0, .step = 0, .action = parse_action("0SEND_F0", ""), .begin_ns = 4'000'000, .end_ns = 6'000'000},
           {.rank = 1, .step = 0, .action = parse_action("1F0", ""), .begin_ns = 6'000'000, .end_ns = 10'000'000}},
      .events = {}};
}

}  // namespace frostpipe::test
