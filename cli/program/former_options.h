#pragma once
#include <string>
#include <string_view>

namespace frostpipe {

/// Returns what takes the place of an option that a command, such as "plan" or "serving run", had in earlier
/// versions or that other tools have ("--lr", "--batch_size"), or of the command itself if `option` is empty, such as
/// "use --fix pp=P". Returns an empty text for any other option.
std::string successor_of(std::string_view command, std::string_view option);

}  // namespace frostpipe
