#include "executor/data/split.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "base/error.h"
#include "executor/data/random_numbers.h"

namespace frostpipe {
namespace {

// The standard specifies the output of std::mt19937_64, but not of std::shuffle and the distributions.

/// Returns a uniform number below `bound`. The lowest 2^64 mod bound values are drawn again, since they would make some
/// results more likely than others.
std::uint64_t uniform_below(std::uint64_t bound, std::mt19937_64& random) {
  const std::uint64_t num_rejected = (0 - bound) % bound;
  std::uint64_t value = random();
  while (value < num_rejected) value = random();
  return value % bound;
}

/// Fisher-Yates shuffle, from the back.
void shuffle(std::vector<int>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[static_cast<std::size_t>(uniform_below(i, random))]);
}

/// Returns how many samples of each label to hold out (method of largest remainders), never all of a label.
std::vector<std::size_t> shares(const std::vector<std::vector<int>>& samples_of_label, double fraction) {
  std::size_t num_samples = 0;
  std::size_t most = 0;
  std::vector<std::size_t> shares;
  std::vector<std::pair<double, std::size_t>> by_remainder;  // minus the remainder, label
  for (std::size_t label = 0; label < samples_of_label.size(); ++label) {
    const std::size_t size = samples_of_label[label].size();
    const std::size_t limit = size == 0 ? 0 : size - 1;
    const double quota = static_cast<double>(size) * fraction;
    num_samples += size;
    most += limit;
    shares.push_back(std::min(static_cast<std::size_t>(quota), limit));
    by_remainder.emplace_back(static_cast<double>(shares.back()) - quota, label);
  }
  std::sort(by_remainder.begin(), by_remainder.end());
  const auto rounded = static_cast<std::size_t>(std::llround(static_cast<double>(num_samples) * fraction));
  const std::size_t wanted = std::min(std::max<std::size_t>(rounded, fraction > 0 ? 1 : 0), most);
  if (fraction > 0 && wanted == 0)
    throw InvalidInput("held-out samples", "need a label with at least two samples",
                       "without one among " + std::to_string(num_samples) + " samples");

  std::size_t given = std::accumulate(shares.begin(), shares.end(), std::size_t{0});
  while (given < wanted) {
    for (const auto& [minus_remainder, label] : by_remainder) {
      if (given == wanted || shares[label] + 1 >= samples_of_label[label].size()) continue;
      ++shares[label];
      ++given;
    }
  }
  return shares;
}

}  // namespace

Split hold_out(const std::vector<int>& labels, int num_labels, double fraction, std::uint64_t seed) {
  if (!(fraction >= 0 && fraction < 1))
    throw InvalidInput("--held-out", "must be >= 0 and < 1", std::to_string(fraction));
  std::vector<std::vector<int>> samples_of_label(static_cast<std::size_t>(num_labels));
  for (std::size_t i = 0; i < labels.size(); ++i)
    samples_of_label.at(static_cast<std::size_t>(labels[i])).push_back(static_cast<int>(i));

  const std::vector<std::size_t> num_test = shares(samples_of_label, fraction);
  std::mt19937_64 random(mixed(seed));
  Split split;
  for (std::size_t label = 0; label < samples_of_label.size(); ++label) {
    std::vector<int>& samples = samples_of_label[label];
    shuffle(samples, random);
    const auto cut = samples.begin() + static_cast<std::ptrdiff_t>(num_test[label]);
    split.test.insert(split.test.end(), samples.begin(), cut);
    split.train.insert(split.train.end(), cut, samples.end());
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.test.begin(), split.test.end());
  return split;
}

std::vector<std::string> labels_of_one_sample(const std::vector<int>& labels,
                                              const std::vector<std::string>& label_names) {
  std::vector<int> counts(label_names.size());
  for (const int label : labels) ++counts.at(static_cast<std::size_t>(label));
  std::vector<std::string> found;
  for (std::size_t label = 0; label < counts.size(); ++label)
    if (counts[label] == 1) found.push_back(label_names[label]);
  return found;
}

std::vector<int> epoch_order(int num_samples, std::uint64_t seed, int epoch) {
  FROSTPIPE_CHECK(num_samples >= 0 && epoch >= 0, "callers count samples and epochs from zero");
  // Seed and epoch are mixed one after another, so that epoch 1 of seed 1 differs from epoch 0 of seed 2.
  std::mt19937_64 random(mixed(mixed(seed) + static_cast<std::uint64_t>(epoch)));
  std::vector<int> order(static_cast<std::size_t>(num_samples));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random);
  return order;
}

}  // namespace frostpipe
