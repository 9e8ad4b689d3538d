#include "papers/prediction_errors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/statistics.h"

namespace frostpipe {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

PredictionErrors prediction_errors(std::span<const Predicted> pairs) {
  PredictionErrors errors{.count = static_cast<int>(pairs.size())};
  if (pairs.empty()) return errors;
  std::vector<double> sizes, predicted, measured;
  for (const Predicted& pair : pairs) {
    const double error = pair.predicted / pair.measured - 1;
    sizes.push_back(std::abs(error));
    errors.bias += error / static_cast<double>(pairs.size());
    predicted.push_back(pair.predicted);
    measured.push_back(pair.measured);
  }
  std::sort(sizes.begin(), sizes.end());
  errors.mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  errors.median = quantile(sizes, 0.5, Between::mean);
  errors.largest = sizes.back();
  errors.rank_correlation = correlation(ranks_of(predicted), ranks_of(measured));
  return errors;
}

}  // namespace frostpipe
