#pragma once
#include <cstdint>
#include <vector>

#include "simulator/generation/request_paths.h"

namespace frostpipe {

struct GenerationRequest {
  Nanoseconds arrival_ns = 0;
  int prompt_tokens = 1, generated_tokens = 1;
};

enum class LoadKind {
  arriving,  // each request at its time
  constant,  // so many are in flight, and one that is done makes place for the next
  filling,   // as many as fit: begins with so many, and each that is done with its prompt or altogether lets one more
             // in, which is dropped where it finds no path (so Helix's host does offline)
};

struct GenerationLoad {
  LoadKind kind = LoadKind::arriving;
  int in_flight = 20;  // constant, filling; the first ones come `gap_ns` after each other
  Nanoseconds gap_ns = 100'000'000;
  std::vector<GenerationRequest> requests;  // in order of arrival; when they are used up no more come
  double expected_generated_tokens = 0;     // what a request reserves beside its prompt
  double most_of_machine = 1;               // no request goes where more of a machine's cache would be reserved
  double most_of_layer = 1;                 // filling: none is let in while more of a layer's caches is
};

struct GenerationOrder {
  GenerationLoad load;
  PathChoice path_choice = PathChoice::flow;
  Nanoseconds begin_ns = 0, end_ns = 0;  // what counts; the run ends at end_ns
  std::uint64_t seed = 1;                // of PathChoice::random
};

/// Of what came back to the coordinator from begin_ns to before end_ns.
struct GenerationRun {
  std::vector<Nanoseconds> prompt_ns;  // of each prompt from its arrival to the first token
  std::vector<Nanoseconds> decode_ns;  // of each further token from the one before
  double mean_in_flight = 0;           // requests on their way, over that time

  bool operator==(const GenerationRun&) const = default;
};

/// Continuous batching on every machine, layer by layer. A machine that is free takes the requests that wait for the
/// layer after the one it computed, or the next after that for which any wait, around and around: in order of arrival,
/// prompts and decodes up to their largest batches. A batch takes the time of its prompts (by the sum of their tokens)
/// and that of its decodes (by their number). What was computed to the machine's end is sent on, request by request, as
/// a message that takes the link while it is sent (at the slower of link and cards), and both cards in proportion.
///
/// Requests choose their paths when they set out, through machines with room in their caches, and wait in front, the
/// oldest first, while there is no such path (filling: are dropped). Requires that every request fits into every
/// machine.
GenerationRun simulate_generation(const GenerationCluster& cluster, const GenerationOrder& order);

}  // namespace frostpipe
