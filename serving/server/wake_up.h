#pragma once
#include "base/descriptor.h"

namespace frostpipe {

/// By which one thread ends another one's poll().
class WakeUp {
 public:
  /// Throws RuntimeFailure where the process has no descriptor left.
  WakeUp();
  int descriptor() const { return event_.number(); }
  void wake() const;
  void clear() const;

 private:
  Descriptor event_;
};

}  // namespace frostpipe
