#include "cli/installation/version.h"

#include "commit.h"

namespace frostpipe {

std::string version_text() {
  return "frostpipe " FROSTPIPE_VERSION "\ncommit " FROSTPIPE_COMMIT "\n" FROSTPIPE_LIBTORCH "\n" FROSTPIPE_LIBRARIES
         "\n" FROSTPIPE_COMPILER;
}

std::string short_version_text() { return FROSTPIPE_VERSION ", commit " FROSTPIPE_COMMIT; }

}  // namespace frostpipe
