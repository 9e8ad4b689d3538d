// Ranks run the micro-batches of lost ranks. Oracles: one process without stages, and the answers of a layout without
// lost ranks.
#include "plan/reroute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "executor/models/task.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

Phase with_vacant(Phase phase, std::vector<MeshCoordinate> vacant) {
  phase.layout.vacant = std::move(vacant);
  return phase;
}

void gradients_equal_one_process(const RankEnvironment& self, int p, int d,
                                 const std::vector<std::vector<MeshCoordinate>>& losses) {
  Job job(self);
  for (const std::vector<MeshCoordinate>& vacant : losses) {
    for (const std::string schedule : {"GPipe", "1F1B", "ZB-H1"}) {
      for (const int first_trainable : {0, 5}) {
        const Phase phase = with_vacant(small_phase(p, d, 3, schedule, first_trainable), vacant);
        check_gradients(job, phase, DType::kFloat64, 29);
        check_gradients(job, phase, DType::kFloat64, 4);  // some micro-batches are empty
      }
    }
  }
}

RANK_TEST(Reroute, GradientsOnThreeOfFourRanksEqualOneProcess, 3) {
  gradients_equal_one_process(self, 2, 2, {{{0, 0}}, {{0, 1}}, {{1, 0}}, {{1, 1}}});
}
RANK_TEST(Reroute, GradientsOnFourOfSixRanksEqualOneProcess, 4) {
  gradients_equal_one_process(self, 2, 3, {{{0, 0}, {0, 2}}, {{0, 1}, {1, 0}}});
}
RANK_TEST(Reroute, GradientsOfReplicasAloneEqualOneProcess, 2) {
  gradients_equal_one_process(self, 1, 3, {{{0, 0}}, {{0, 1}}});
}
RANK_TEST(Reroute, GradientsOfSeveralStagesPerRankEqualOneProcess, 3) {
  Job job(self);
  for (const std::string schedule : {"Interleaved1F1B", "ZBVZeroBubble"})
    check_gradients(job, with_vacant(small_phase(2, 2, 4, schedule, 0, 2), {{1, 0}}), DType::kFloat64, 29);
}

/// The answers for all samples, from whichever rank has them.
std::vector<double> answers_in(Job& job, const Samples& data, const Phase& phase) {
  std::vector<int> samples(data.size());
  std::iota(samples.begin(), samples.end(), 0);
  RankSession session = job.session(data, Optimizer::kSgd, DType::kFloat64);
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(job.config, layer, kSeed, state);
  });
  std::vector<double> found(answer_begins(data, samples, answer_shape(job.config)).back(), 0.0);
  if (session.runner()) found = session.runner()->answers(data, samples, 3);
  return job.communicator->sum(std::move(found));
}

RANK_TEST(Reroute, AnswersAreThoseOfAnyLayout, 3) {
  Job job(self);
  const auto data = small_samples(job.config, 20);  // 7 batches of 3: replicas have different numbers
  const std::vector<double> expected = answers_in(job, *data, small_phase(1, 1, 1, "GPipe", 0));
  for (const MeshCoordinate vacant : {MeshCoordinate{0, 1}, MeshCoordinate{1, 0}}) {
    const std::vector<double> found = answers_in(job, *data, with_vacant(small_phase(2, 2, 2, "1F1B", 0), {vacant}));
    CHECK_RANK(found.size() == expected.size(), "an answer for each");
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK_RANK(std::abs(found[i] - expected[i]) <= 1e-9 * (1 + std::abs(expected[i])), "answers");
  }
}

}  // namespace
}  // namespace frostpipe::test
