#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace frostpipe {

/// Sample numbers in ascending order; together each sample once.
struct Split {
  std::vector<int> train;
  std::vector<int> test;

  bool operator==(const Split&) const = default;
};

/// Sets about `fraction` of the samples apart for testing, chosen at random, of every label in proportion.
///
/// The number of test samples is fraction x samples, rounded to nearest but at least 1 if fraction > 0. Of a label with
/// n samples they include n x fraction rounded down, and one more of those labels that lost most by that (ties: the
/// earlier label). Every label keeps a sample for training. Equal arguments give an equal split on every platform.
/// Throws InvalidInput unless 0 <= fraction < 1, and if fraction > 0 while no label has two samples.
Split hold_out(const std::vector<int>& labels, int num_labels, double fraction, std::uint64_t seed);

/// Names of the labels that a single sample has, in their order: it cannot be both trained and tested on.
std::vector<std::string> labels_of_one_sample(const std::vector<int>& labels,
                                              const std::vector<std::string>& label_names);

/// The order of the samples in one epoch (counted from 0): a permutation of 0 ... num_samples - 1 that depends on
/// nothing but the arguments, on every platform.
std::vector<int> epoch_order(int num_samples, std::uint64_t seed, int epoch);

}  // namespace frostpipe
