#pragma once
#include "base/descriptor.h"

namespace frostpipe {

/// Lets one thread end another thread's poll().
class WakeUp {
 public:
  /// Throws RuntimeFailure if no descriptor is available.
  WakeUp();
  int descriptor() const { return event_.number(); }
  void wake() const;
  void clear() const;

 private:
  Descriptor event_;
};

}  // namespace frostpipe
