#include "cli/training/train_display.h"

#include <utility>

#include "cli/shared/output.h"

namespace frostpipe {

TrainDisplay::TrainDisplay(std::string name) : name_(std::move(name)) {}

TrainCallbacks TrainDisplay::callbacks() {
  return {.replan = {},
          .recover = {},
          .progress =
              [this](double fraction, const std::string& line) {
                if (!display_) display_ = std::make_unique<ProgressDisplay>("train " + name_);
                display_->show(fraction, line);
              },
          .note =
              [this](const std::string& sentence) {
                if (display_) display_->clear();
                print_note(sentence);
              }};
}

}  // namespace frostpipe
