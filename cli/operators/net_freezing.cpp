#include "cli/operators/net_freezing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {

FreezePolicy net_freeze_policy(const std::string& text) {
  try {
    FreezePolicy policy = parse_freeze_policy(text, {});
    if (policy.rule == FreezePolicy::Rule::plan || policy.rule == FreezePolicy::Rule::fixed) return policy;
  } catch (const InvalidInput&) {  // the UsageError below reports it
  }
  throw UsageError("--freeze",
                   "must be plan or fixed:N,N,... (frozen layers after the 1st, 2nd, ... epoch, none less than the one "
                   "before)",
                   text);
}

std::string freezes_that_never_happen(const std::string& text, int num_epochs) {
  const std::vector<int> layers = net_freeze_policy(text).fixed_layers;
  const auto num_due =
      std::min(layers.size(), static_cast<std::size_t>(num_epochs - 1));  // nothing trains after the last
  const int most = num_due == 0 ? 0 : layers[num_due - 1];
  std::vector<int> never;
  for (const int number : layers)
    if (number > most && (never.empty() || number > never.back())) never.push_back(number);
  if (never.empty()) return "";
  return fmt::format("--freeze {}: the run ends after {}, so that it never freezes {} layers", text,
                     plural(num_epochs, "epoch"), fmt::join(never, ", "));
}

}  // namespace frostpipe
