#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// Arrival times of requests, sorted and relative to the start of a run. Equal arguments give equal times.

namespace frostpipe {

/// The processes by which synthetic requests arrive, at the mean rate `rate`.
enum class ArrivalProcess {
  even,     // one every 1 / rate; the first after 1 / rate
  poisson,  // independent arrivals with exponential gaps
  square,   // Poisson at 1.5 and 0.5 times the rate in turn, one second each, from a random phase on
  mmpp,     // Poisson at 3 and 0.5 times the rate for exponential times with means of 0.5 s and 2 s; either may be
            // first
};

/// Returns arrival times in [0, duration_ns). The expected rate over seeds is requests_per_second, even for short
/// durations. Requires requests_per_second >= 0. Takes time for every request and, if the rate changes, for every
/// second.
std::vector<Nanoseconds> arrivals_of(ArrivalProcess process, double requests_per_second, Nanoseconds duration_ns,
                                     std::uint64_t seed);

/// Scales recorded times so that the mean rate from 0 to the last one is requests_per_second; bursts stay bursts.
/// Requires sorted times, the last of them > 0, and requests_per_second > 0.
std::vector<Nanoseconds> at_rate(std::span<const Nanoseconds> times, double requests_per_second);

/// Assigns each request to one of several models, at random with these weights. Returns [model][request].
std::vector<std::vector<Nanoseconds>> dealt_by_weight(std::span<const Nanoseconds> times,
                                                      std::span<const double> weights, std::uint64_t seed);

/// Returns the option's word, such as "poisson".
std::string_view to_string(ArrivalProcess process);
std::optional<ArrivalProcess> find_arrival_process(std::string_view word);
/// Returns "even, poisson, square, mmpp".
std::string known_arrival_processes();

}  // namespace frostpipe
