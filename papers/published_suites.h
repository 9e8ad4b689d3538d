#pragma once
#include <string>

#include "papers/published_table.h"

namespace frostpipe {

/// These functions compare predictions with what others measured. Those with a folder throw InvalidInput if it lacks a
/// file.

/// Compares the simulator with Sailor's runs: iteration times and peak memory on GH200 and on mixed GPUs.
PublishedTable sailor_table(const std::string& folder);

/// Compares the simulator with vTrain's runs: iteration times of Megatron on A100s, on several nodes (64 to 512
/// devices) and on one.
PublishedTable vtrain_table(const std::string& folder);

/// Compares the serving planners with PPipe's artifact: the objective values and planning times of its plans with those
/// of ours, made from its tables. Further rows compare its figures for Poisson arrivals with simulations of its own
/// plans.
PublishedTable ppipe_table(const std::string& folder);

/// Compares the simulator with runs of 1F1B on 8 A100s (Vocabulary Parallelism): iterations predicted from the measured
/// times of each rank, with equally many layers per rank and with layers moved off the last rank; and the planner's
/// gain over the former. FOLDER has `runs.csv`.
PublishedTable vocabulary_pipeline_table(const std::string& folder);

/// Compares predictions with the runs by which BLOOM's layout was chosen, on up to 384 A100s: iteration times and
/// memory. FOLDER has `runs.csv`. The constants were fitted to every second row and are tested on the others.
PublishedTable bloom_table(const std::string& folder);

/// Compares the simulator with Tables 1 and 2 and four figures of Narayanan et al. 2021, Megatron on up to 3,072 A100s;
/// needs no files.
PublishedTable megatron_table();

/// Compares the simulator and the slice planner with Figure 6 and Table 1 of Li et al. 2021, TeraPipe's token slices;
/// needs no files.
PublishedTable terapipe_table();

/// Compares the simulator with Table 5 of Qi et al. 2023: bubble rates of zero-bubble schedules, simulated with the
/// times of its Table 9; needs no files.
PublishedTable zero_bubble_table();

/// Compares the simulator with the tables of He et al. 2021, PipeTransformer, by its own rules on its own machine;
/// needs no files.
PublishedTable pipetransformer_paper_table();

/// Compares the simulator with Narayanan et al. 2021 (ICML): the speed of PipeDream-2BW and its gain over 1F1B with
/// flushes and over tensor parallelism; needs no files.
PublishedTable pipedream_2bw_table();

/// The suites that read published files, by name.
struct FolderSuite {
  const char *name, *meaning;
  PublishedTable (*table)(const std::string& folder);
};
inline constexpr FolderSuite kFolderSuites[] = {
    {"sailor", "the simulator against published training runs on GH200 and mixed GPUs", sailor_table},
    {"vtrain", "the simulator against published runs of Megatron on A100s", vtrain_table},
    {"ppipe", "the plans of PPipe's artifact recomputed (optimum and planning time) and simulated", ppipe_table},
    {"vocabulary-pipeline",
     "the simulator against 1F1B on 8 A100s, rank by rank, with equally many layers per rank and with layers moved",
     vocabulary_pipeline_table},
    {"bloom",
     "the simulator against the search for BLOOM's layout on A100s: tensor, pipeline and data parallelism, time and "
     "memory",
     bloom_table},
};

/// The suites that need no files, by name.
struct FilelessSuite {
  const char *name, *meaning;
  PublishedTable (*table)();
};
inline constexpr FilelessSuite kFilelessSuites[] = {
    {"megatron",
     "the simulator against Megatron-LM's paper (up to 3,072 GPUs): Tables 1 and 2, Figures 11, 12, 13 and 18",
     megatron_table},
    {"terapipe", "the simulator against Figure 6 and Table 1 of TeraPipe's paper (token slices)", terapipe_table},
    {"zero-bubble", "the simulator against Table 5 of Zero Bubble's paper (bubble rates)", zero_bubble_table},
    {"pipetransformer-paper",
     "the simulator against the tables of PipeTransformer's paper, by its rules on its machine",
     pipetransformer_paper_table},
    {"pipedream-2bw", "the simulator against PipeDream-2BW's paper: its gain over flushing and over tensor parallelism",
     pipedream_2bw_table},
};

}  // namespace frostpipe
