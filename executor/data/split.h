#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace frostpipe {

/// Sample numbers, ascending; every sample is in exactly one list.
struct Split {
  std::vector<int> train;
  std::vector<int> test;

  bool operator==(const Split&) const = default;
};

/// Holds out about `fraction` of the samples for testing, chosen at random, in proportion for every label.
///
/// The number of test samples is fraction x samples, rounded to nearest but at least 1 if fraction > 0. A label with n
/// samples contributes n x fraction rounded down, plus one for the labels with the largest remainders (ties: the
/// earlier label). Every label keeps a sample for training. Equal arguments give an equal split on every platform.
/// Throws InvalidInput unless 0 <= fraction < 1, and if fraction > 0 while no label has two samples.
Split hold_out(const std::vector<int>& labels, int num_labels, double fraction, std::uint64_t seed);

/// Returns the names of the labels with a single sample, in order: such a label cannot be both trained and tested on.
std::vector<std::string> labels_of_one_sample(const std::vector<int>& labels,
                                              const std::vector<std::string>& label_names);

/// Returns the order of the samples in one epoch (counted from 0): a permutation of 0 ... num_samples - 1 that depends
/// only on the arguments, on every platform.
std::vector<int> epoch_order(int num_samples, std::uint64_t seed, int epoch);

}  // namespace frostpipe
