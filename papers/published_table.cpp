#include "papers/published_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace frostpipe {
namespace {

/// Returns the errors of these rows; the rows of one base count as one row with their mean ratio.
PredictionErrors errors_of(const std::vector<const PublishedRow*>& rows) {
  std::map<std::string, std::vector<const PublishedRow*>> bases;
  for (std::size_t i = 0; i < rows.size(); ++i)
    bases[rows[i]->base.empty() ? fmt::format("#{:08}", i) : rows[i]->base].push_back(rows[i]);
  std::vector<Predicted> pairs;
  for (const auto& [base, members] : bases) {
    double ratio = 0, measured = 0;
    for (const PublishedRow* row : members) {
      ratio += row->predicted / row->measured / static_cast<double>(members.size());
      measured += row->measured / static_cast<double>(members.size());
    }
    pairs.push_back({ratio * measured, measured});
  }
  return prediction_errors(pairs);
}

}  // namespace

std::vector<PublishedGroup> groups_of(const std::vector<PublishedRow>& rows) {
  std::vector<std::pair<std::string, std::string>> keys, totals;
  const auto add = [](auto& list, std::pair<std::string, std::string> key) {
    if (std::find(list.begin(), list.end(), key) == list.end()) list.push_back(std::move(key));
  };
  for (const PublishedRow& row : rows) {
    add(keys, {row.group, row.what});
    add(totals, {"", row.what});
  }
  if (keys.size() > totals.size()) keys.insert(keys.end(), totals.begin(), totals.end());
  std::vector<PublishedGroup> groups;
  for (const auto& [name, what] : keys) {
    std::vector<const PublishedRow*> members;
    std::size_t all = 0;
    for (const PublishedRow& row : rows) {
      if ((!name.empty() && row.group != name) || row.what != what) continue;
      ++all;
      if (row.counts) members.push_back(&row);
    }
    groups.push_back({name.empty() ? "all" : name, what, all, errors_of(members)});
  }
  return groups;
}

}  // namespace frostpipe
