#pragma once
#include <unicode/uchar.h>

namespace frostpipe {

/// The first Unicode version (its major number) that has the character; 0 where ICU's own is older. ICU knows each
/// character's age, so what an older Unicode says can be had from a younger ICU.
inline int unicode_version_of(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0];
}

}  // namespace frostpipe
