#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "executor/elastic/job_environment.h"

namespace c10d {
class Store;
}

namespace frostpipe {

/// What one rank has put into the store for the others under `name`, which is new in this attempt.
void put_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, const std::string& text);

bool has_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank);

/// What a rank has put there, which must be there.
std::string text_of_rank(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank);

/// Of those that have put nothing there within `limit`: who waited for whom, and what may be the reason.
std::string have_not_come(const RankEnvironment& self, const std::vector<int>& ranks, std::chrono::milliseconds limit);

/// What all ranks have put there, by rank. Waits for them. Throws RuntimeFailure that names those who have put nothing
/// within `limit`: nobody watches a rank that has not come yet.
std::vector<std::string> texts_of_all(const RankEnvironment& self, c10d::Store& store, const std::string& name,
                                      std::chrono::milliseconds limit = std::chrono::minutes(5));

/// Called by all ranks before they leave for a reason that all have found in the store. Rank 0 may host it, and it ends
/// with rank 0, which therefore waits for the others: 10 s at most, for who has not read by then has ended.
void leave_together(const RankEnvironment& self, c10d::Store& store);

}  // namespace frostpipe
