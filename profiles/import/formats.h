#pragma once
// Implementation header of import.cpp: formats that are not graphs.
#include <cstdint>
#include <string_view>
#include <vector>

#include "profiles/import/import.h"

namespace frostpipe {

/// Imports Sailor's {"micro-batch": {"tensor-parallel size": {"layer": [forward, backward, update]}}}, in seconds.
Profile import_sailor(std::string_view text, std::string_view source, const ImportOptions& options);

/// Imports a table of numbers separated by commas, in microseconds: a row per block, a column per batch size.
Profile import_block_table(std::string_view text, std::string_view source, const ImportOptions& options);

/// Reads such a table, in whole microseconds, as nanoseconds by row and column. Throws InvalidInput that names the
/// line.
std::vector<std::vector<Nanoseconds>> block_table_rows(std::string_view text, std::string_view source);

/// Rounds to a whole number of nanoseconds, bytes or parameters. Throws InvalidInput that names `source`, the place in
/// the file, if the amount is negative or greater than `most`.
std::int64_t rounded(double amount, std::string_view source, std::int64_t most = 1'000'000'000'000'000);

/// Returns a chain of embedding, layers and head with generic names, together `num_layers` >= 2.
Model chain_of(std::string_view name, int num_layers);

}  // namespace frostpipe
