#include "serving/server/servable_model.h"

#include <limits>

namespace frostpipe {

ServableModel emulated_model(const ServedModel& planned) {
  ServableModel model;
  model.form.max_tokens = planned.tokens;
  model.form.vocabulary_size = std::numeric_limits<std::int32_t>::max();
  model.shape.max_tokens = planned.tokens;
  return model;
}

}  // namespace frostpipe
