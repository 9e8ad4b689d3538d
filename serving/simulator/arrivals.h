#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// When requests arrive: sorted times from the begin of a run. Equal arguments give equal times.

namespace frostpipe {

/// How requests arrive where no file says so. `rate` is the mean that is asked for.
enum class ArrivalProcess {
  even,     // one every 1 / rate, the first after as long
  poisson,  // independent of each other: exponential gaps
  square,   // Poisson, at 1.5 and 0.5 times the rate in turn, a second each, from a random moment of the two on
  mmpp,     // Poisson, at 3 and 0.5 times the rate for exponential times of 0.5 s and 2 s in the mean, either first
};

/// In [0, duration_ns), at the rate in the mean over seeds, however short the duration. Requires requests_per_second >=
/// 0. Takes time for every request, and for every second where the rate changes.
std::vector<Nanoseconds> arrivals_of(ArrivalProcess process, double requests_per_second, Nanoseconds duration_ns,
                                     std::uint64_t seed);

/// Recorded times, stretched or compressed so that as many requests per second arrive from 0 to the last one; bursts
/// stay bursts. Requires sorted times, the last of them > 0, and requests_per_second > 0.
std::vector<Nanoseconds> at_rate(std::span<const Nanoseconds> times, double requests_per_second);

/// Deals each request to one of several models, at random with these weights. [model][request]
std::vector<std::vector<Nanoseconds>> dealt_by_weight(std::span<const Nanoseconds> times,
                                                      std::span<const double> weights, std::uint64_t seed);

/// "poisson", as in options.
std::string_view to_string(ArrivalProcess process);
std::optional<ArrivalProcess> find_arrival_process(std::string_view word);
/// "even, poisson, square, mmpp"
std::string known_arrival_processes();

}  // namespace frostpipe
