#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// Returns what has taken the place of an option that a command had in earlier versions, or of the command itself if
/// `option` is empty, such as "use --fix pp=P"; or which command of another of the tool's programs has the option, such
/// as "'frostpipe serving plan' has --slo". Returns an empty text if nothing is known of it.
std::string successor_of(std::string_view command, std::string_view option);

}  // namespace frostpipe
