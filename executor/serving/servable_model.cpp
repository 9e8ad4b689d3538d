#include "executor/serving/servable_model.h"

namespace frostpipe {

ServableModel emulated_model(const ServedModel& planned) {
  ServableModel model;
  model.form.most_tokens = planned.tokens;
  model.shape.most_tokens = planned.tokens;
  return model;
}

}  // namespace frostpipe
