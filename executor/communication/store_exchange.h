#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "executor/elastic/job_environment.h"

namespace c10d {
class Store;
}

namespace frostpipe {

/// Stores `text` for the other ranks under `name`, which must be new in this attempt.
void publish_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, const std::string& text);

bool has_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank);

/// Returns the text that `rank` has stored; has_text() must be true.
std::string text_of_rank(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank);

/// Returns a sentence for an error: this rank has waited `limit` for `ranks`, and the probable reason.
std::string have_not_registered(const RankEnvironment& self, const std::vector<int>& ranks,
                                std::chrono::milliseconds limit);

/// Waits for the texts of all ranks and returns them, by rank. Throws RuntimeFailure that names the ranks whose text is
/// missing after `limit`; nothing else watches a rank that has not registered yet.
std::vector<std::string> gather_texts(const RankEnvironment& self, c10d::Store& store, const std::string& name,
                                      std::chrono::milliseconds limit = std::chrono::minutes(5));

/// Lets all ranks read why they stop before the store disappears. Must be called by all ranks. Rank 0 may host the
/// store and so waits for the others, for at most 10 s.
void wait_until_all_read(const RankEnvironment& self, c10d::Store& store);

}  // namespace frostpipe
