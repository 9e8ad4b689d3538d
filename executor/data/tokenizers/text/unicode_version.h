#pragma once
#include <unicode/uchar.h>

namespace frostpipe {

/// Returns the major number of the first Unicode version that has the character; 0 if this ICU does not know it. This
/// tells which characters an older Unicode version lacks.
inline int unicode_version_of(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0];
}

}  // namespace frostpipe
