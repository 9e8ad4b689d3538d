#include "cli/shared/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/shared/output.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

constexpr int kBarWidth = 24;

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

double within_bounds(double fraction) { return std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0; }

}  // namespace

ProgressDisplay::ProgressDisplay(std::string job) : job_(std::move(job)), is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() { clear(); }

void ProgressDisplay::clear() {
  if (bar_is_shown_) std::fputs("\r\033[K", stderr);
  bar_is_shown_ = false;
}

void ProgressDisplay::show(double fraction, const std::string& line) {
  is_terminal_ ? show_bar(within_bounds(fraction), line) : show_line(within_bounds(fraction), line);
}

void ProgressDisplay::show_bar(double fraction, const std::string& line) {
  const auto now = Clock::now();
  if (bar_is_shown_ && fraction < 1 && now - last_shown_ < 100ms) return;
  last_shown_ = now;
  bar_is_shown_ = true;
  const int filled = static_cast<int>(fraction * kBarWidth + 0.5);
  std::string text = fmt::format("{} [{}{}] {:3.0f} %  {}", job_, std::string(filled, '#'),
                                 std::string(kBarWidth - filled, '.'), 100 * fraction, line);
  text.resize(std::min(text.size(), terminal_columns() - 1));
  std::fputs(("\r" + printable(text) + "\033[K").c_str(), stderr);
  std::fflush(stderr);
}

void ProgressDisplay::show_line(double fraction, const std::string& line) {
  const auto now = Clock::now();
  const bool first = last_fraction_ < 0;
  const bool finished = fraction >= 1 && last_fraction_ < 1;
  const bool moved = fraction - last_fraction_ >= 0.05 && now - last_shown_ >= 2s;
  if (!first && !finished && !moved && now - last_shown_ < 30s) return;
  last_fraction_ = fraction;
  last_shown_ = now;
  std::fputs(printable(fmt::format("{} {:3.0f} %  {}\n", job_, 100 * fraction, line)).c_str(), stderr);
}

}  // namespace frostpipe
