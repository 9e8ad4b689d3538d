#include "serving/simulator/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/enum_words.h"
#include "base/error.h"
#include "base/portable_random.h"

namespace frostpipe {
namespace {

constexpr EnumWords<ArrivalProcess, 4> kProcesses = {{{ArrivalProcess::even, "even"},
                                                      {ArrivalProcess::poisson, "poisson"},
                                                      {ArrivalProcess::square, "square"},
                                                      {ArrivalProcess::mmpp, "mmpp"}}};

/// A period of constant rate.
struct Stretch {
  double factor = 1;  // multiple of the mean rate
  double seconds = 0;
};

/// The consecutive periods of a process. A run begins at a random point of them, so that the expected rate is the mean
/// rate at every moment.
class Stretches {
 public:
  Stretches(ArrivalProcess process, PortableRandom& random) : process_(process), random_(random) {
    if (process == ArrivalProcess::square) {
      const double phase = 2 * random.uniform();
      is_burst_ = phase < 1;
      begun_ = is_burst_ ? phase : phase - 1;
    } else if (process == ArrivalProcess::mmpp) {
      is_burst_ =
          random.uniform() < kBurstSeconds / (kBurstSeconds + kCalmSeconds);  // the remaining time is memoryless
    }
  }

  Stretch next() {
    const bool is_burst = std::exchange(is_burst_, !is_burst_);
    switch (process_) {
      case ArrivalProcess::square:
        return {.factor = is_burst ? 1.5 : 0.5, .seconds = 1 - std::exchange(begun_, 0)};
      case ArrivalProcess::mmpp:
        return {.factor = is_burst ? 3.0 : 0.5,
                .seconds = random_.exponential(is_burst ? kBurstSeconds : kCalmSeconds)};
      case ArrivalProcess::even:
      case ArrivalProcess::poisson:
        break;
    }
    return {.factor = 1, .seconds = std::numeric_limits<double>::infinity()};
  }

 private:
  static constexpr double kBurstSeconds = 0.5, kCalmSeconds = 2;  // mean durations for mmpp

  ArrivalProcess process_;
  PortableRandom& random_;
  bool is_burst_ = true;
  double begun_ = 0;  // elapsed seconds of the first period
};

std::vector<Nanoseconds> even_arrivals(double rate, Nanoseconds duration_ns) {
  std::vector<Nanoseconds> times;
  for (int n = 1;; ++n) {
    const double at_ns = std::round(1e9 * n / rate);
    if (at_ns >= static_cast<double>(duration_ns)) return times;
    times.push_back(static_cast<Nanoseconds>(at_ns));
  }
}

}  // namespace

std::vector<Nanoseconds> arrivals_of(ArrivalProcess process, double requests_per_second, Nanoseconds duration_ns,
                                     std::uint64_t seed) {
  FROSTPIPE_CHECK(requests_per_second >= 0, "a rate is not negative");
  if (requests_per_second == 0) return {};
  if (process == ArrivalProcess::even) return even_arrivals(requests_per_second, duration_ns);
  const double end = 1e-9 * static_cast<double>(duration_ns);
  PortableRandom random(seed);
  std::vector<Nanoseconds> times;
  Stretches stretches(process, random);
  double begin = 0;
  while (begin < end) {
    const Stretch stretch = stretches.next();
    const double stretch_end = std::min(end, begin + stretch.seconds);
    const double mean_gap = 1 / (requests_per_second * stretch.factor);
    // A Poisson process is memoryless, so each period can start afresh.
    for (double at = begin + random.exponential(mean_gap); at < stretch_end; at += random.exponential(mean_gap))
      times.push_back(std::min(duration_ns - 1, static_cast<Nanoseconds>(1e9 * at)));
    begin = stretch_end;
  }
  return times;
}

std::vector<Nanoseconds> at_rate(std::span<const Nanoseconds> times, double requests_per_second) {
  FROSTPIPE_CHECK(!times.empty() && times.back() > 0 && requests_per_second > 0, "there is a rate to change");
  const double wanted_end_ns = 1e9 * static_cast<double>(times.size()) / requests_per_second;
  const double factor = wanted_end_ns / static_cast<double>(times.back());
  std::vector<Nanoseconds> stretched;
  stretched.reserve(times.size());
  for (const Nanoseconds at_ns : times) stretched.push_back(std::llround(factor * static_cast<double>(at_ns)));
  return stretched;
}

std::vector<std::vector<Nanoseconds>> dealt_by_weight(std::span<const Nanoseconds> times,
                                                      std::span<const double> weights, std::uint64_t seed) {
  std::vector<double> ends(weights.size());
  std::partial_sum(weights.begin(), weights.end(), ends.begin());
  FROSTPIPE_CHECK(!ends.empty() && ends.back() > 0, "some model gets requests");
  PortableRandom random(seed);
  std::vector<std::vector<Nanoseconds>> dealt(weights.size());
  for (const Nanoseconds at_ns : times) {
    const auto end = std::upper_bound(ends.begin(), ends.end() - 1, random.uniform() * ends.back());
    dealt[end - ends.begin()].push_back(at_ns);
  }
  return dealt;
}

std::string_view to_string(ArrivalProcess process) { return word_of(kProcesses, process); }

std::optional<ArrivalProcess> find_arrival_process(std::string_view word) { return value_of(kProcesses, word); }

std::string known_arrival_processes() {
  std::string words;
  for (const auto& row : kProcesses) words += (words.empty() ? "" : ", ") + std::string(row.word);
  return words;
}

}  // namespace frostpipe
