#pragma once
#include <string>

#include "cli/published_table.h"

namespace frostpipe {

/// The simulator against training runs that others measured. Both throw InvalidInput if the folder does not hold their files.

/// Sailor's: iteration times and peak memory on GH200 and on mixed GPUs.
PublishedTable sailor_table(const std::string& folder);

/// vTrain's: iteration times of Megatron on A100s, several nodes (64 to 512 devices) and one.
PublishedTable vtrain_table(const std::string& folder);

/// Table 1 of Narayanan et al. 2021: Megatron on up to 3,072 A100s; needs no files.
PublishedTable megatron_table();

/// Figure 6 of Li et al. 2021: TeraPipe's slices; needs no files.
PublishedTable terapipe_table();

}  // namespace frostpipe
