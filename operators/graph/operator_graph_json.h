#pragma once
// Implementation header: the fields of operator graphs, which profiles and plans have. Include it from .cpp files only.
#include "base/json_reader.h"
#include "operators/graph/operator_graph.h"

namespace frostpipe {

constexpr json::Bounds kOperatorBytes = json::between(0, kMaxOperatorBytes);

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ClassCost>& time) {
  archive("device_class", time.device_class);
  archive("overhead_ns", time.overhead_ns, json::kDuration);
  archive("work_ns", time.work_ns, json::kDuration);
  archive("overhead_bytes", time.overhead_bytes, json::MayBeMissing{kOperatorBytes});
  archive("work_bytes", time.work_bytes, json::MayBeMissing{kOperatorBytes});
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Operator>& one) {
  archive("name", one.name);
  archive("kind", one.kind);
  archive("layer", one.layer, json::between(0, 1 << 20));
  archive("output_bytes", one.output_bytes, json::MayBeMissing{kOperatorBytes});
  archive("weight_bytes", one.weight_bytes, json::MayBeMissing{kOperatorBytes});
  archive("times", one.times);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorEdge>& edge) {
  archive("from", edge.from, json::at_least(0));
  archive("to", edge.to, json::at_least(0));
  archive("kind", edge.kind);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorGraph>& graph) {
  archive("net", graph.net);
  archive("batch", graph.batch, json::between(1, kMaxOperatorBatch));
  archive("operators", graph.operators);
  archive("edges", graph.edges);
}

}  // namespace frostpipe
