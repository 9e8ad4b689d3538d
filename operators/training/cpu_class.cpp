#include "operators/training/cpu_class.h"

#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/steady_clock.h"
#include "operators/training/processor_time.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

constexpr double kMaxSlowdown = 1000;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Removes "SIGN NUMBER" from the end of `text` and sets `number`. Returns false if SIGN is not followed by a number;
/// if there is no SIGN, returns true and leaves `number` unchanged.
template <class Number>
bool take_number(std::string_view& text, std::string_view sign, Number& number) {
  const std::size_t at = text.find(sign);
  if (at == std::string_view::npos) return true;
  const auto found = parse_number<Number>(text.substr(at + sign.size()));
  if (found) number = *found;
  text = text.substr(0, at);
  return found.has_value();
}

}  // namespace

std::optional<CpuClass> parse_cpu_class(std::string_view text) {
  CpuClass found;
  if (!take_number(text, " / ", found.slowdown) || !take_number(text, " x ", found.threads)) return std::nullopt;
  const bool fits = text == "cpu" && found.threads >= 1 && found.threads <= kMaxThreads && found.slowdown >= 1 &&
                    found.slowdown <= kMaxSlowdown;
  return fits ? std::optional(found) : std::nullopt;
}

SlowCpu::SlowCpu(double slowdown) : slowdown_(slowdown) {
  if (slowdown > 1) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // in ns; the default is 50,000
}

void SlowCpu::begin_work() { work_began_ns_ = processor_time_ns(CLOCK_THREAD_CPUTIME_ID); }

void SlowCpu::end_work() {
  if (slowdown_ <= 1) return;
  const Nanoseconds end_ns = steady_now_ns();
  const Nanoseconds work_ns = processor_time_ns(CLOCK_THREAD_CPUTIME_ID) - work_began_ns_;
  const auto pause_ns = static_cast<Nanoseconds>((slowdown_ - 1) * static_cast<double>(work_ns));
  if (pause_ns <= overslept_ns_) {
    overslept_ns_ -= pause_ns;
    return;
  }
  const Nanoseconds wanted_ns = pause_ns - overslept_ns_;
  std::this_thread::sleep_for(std::chrono::nanoseconds(wanted_ns));
  overslept_ns_ = std::max<Nanoseconds>(0, steady_now_ns() - end_ns - wanted_ns);
}

}  // namespace frostpipe
