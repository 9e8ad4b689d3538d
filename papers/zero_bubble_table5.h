#pragma once
#include <cmath>

#include "simulator/cost_model.h"

namespace frostpipe::zero_bubble {

/// A row of Tables 9 and 5 of Zero Bubble (Qi et al. 2023): sizes (v is the stages per rank of the column
/// "interleaved"), times in ms, and bubble rates.
struct Table5Row {
  int p, m, v;
  double forward, input_gradient, weight_gradient, latency;
  double one_f_one_b, interleaved, h1, h2, automatic_2p;
};

inline constexpr Table5Row kTable5[] = {
    {8, 24, 3, 18.522, 18.086, 9.337, .601, .2431, .1055, .1585, .1083, .0433},
    {8, 32, 3, 18.513, 18.086, 9.331, .626, .1985, .0818, .1242, .0837, .0039},
    {8, 64, 3, 18.546, 18.097, 9.321, .762, .1240, .0443, .0674, .0444, .0026},
    {8, 24, 4, 29.718, 29.444, 19.927, .527, .2347, .0808, .1323, .0698, .0029},
    {8, 32, 4, 29.802, 29.428, 19.530, .577, .1898, .0628, .1045, .0559, .0022},
    {8, 64, 4, 29.935, 29.621, 19.388, .535, .1091, .0320, .0554, .0294, .0010},
    {16, 48, 3, 11.347, 11.248, 8.132, .377, .2552, .1104, .1397, .0672, .0066},
    {16, 64, 3, 11.307, 11.254, 8.101, .379, .2082, .0852, .1088, .0516, .0054},
    {16, 128, 3, 11.325, 11.308, 8.109, .378, .1251, .0445, .0576, .0266, .0028},
    {32, 96, 2, 10.419, 10.207, 7.715, .408, .2646, .1493, .1421, .0641, .0038},
    {32, 128, 2, 10.408, 10.204, 7.703, .408, .2168, .1164, .1106, .0490, .0029},
    {32, 256, 2, 10.402, 10.248, 7.698, .460, .1352, .0624, .0594, .0257, .0018},
};

inline UniformCosts costs_of(const Table5Row& row) {
  const auto nanoseconds = [](double ms) { return static_cast<Nanoseconds>(std::llround(ms * 1e6)); };
  return {.forward_ns = nanoseconds(row.forward),
          .input_gradient_ns = nanoseconds(row.input_gradient),
          .weight_gradient_ns = nanoseconds(row.weight_gradient),
          .latency_ns = nanoseconds(row.latency)};
}

/// Returns (cost - m T) / cost, where T is the compute time of one micro-batch and the paper's cost is the longest span
/// of one rank.
inline double bubble_rate(double cost_ns, const Table5Row& row) {
  const UniformCosts costs = costs_of(row);
  const auto work =
      static_cast<double>(row.m * (costs.forward_ns + costs.input_gradient_ns + costs.weight_gradient_ns));
  return (cost_ns - work) / cost_ns;
}

}  // namespace frostpipe::zero_bubble
