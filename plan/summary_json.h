#pragma once
// Implementation header: JSON keys of RunSummary, shared by summary.cpp and comparison.cpp. Include it from .cpp files
// only.
#include "plan/summary.h"
#include "plan/trace_json.h"
#include "profiles/device_type.h"

namespace frostpipe {

/// Version of the files that hold runs: "frostpipe.run" and "frostpipe.summary".
inline constexpr int kRunVersion = 2;
inline constexpr json::Formerly kFormerlyFrozenLayers{
    .name = "frozen_layers", .last_version = 1, .bounds = json::at_least(0)};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, PhaseSummary>& phase) {
  archive("from_step", phase.from_step, json::at_least(0));
  archive("num_steps", phase.num_steps, json::at_least(0));
  archive("frozen_blocks", phase.frozen_blocks, kFormerlyFrozenLayers);
  archive("first_trainable_layer", phase.first_trainable_layer, json::at_least(0));
  archive("stages", phase.stages, json::at_least(1));
  archive("replicas", phase.replicas, json::at_least(1));
  archive("tensor_ranks", phase.tensor_ranks, json::MayBeMissing{json::at_least(1)});
  archive("devices", phase.devices, json::MayBeMissing{json::between(0, json::kMaxRanks)});
  archive("num_micro_batches", phase.num_micro_batches, json::at_least(1));
  archive("schedule", phase.schedule);
  archive("partition", phase.partition);
  archive("tokens", phase.tokens, json::at_least(0));
  archive("predicted_iteration_ns", phase.predicted_iteration_ns, json::at_least(0));
  archive("measured_iteration_ns", phase.measured_iteration_ns, json::at_least(0));
  archive("measured_iteration_low_ns", phase.measured_iteration_low_ns, json::at_least(0));
  archive("measured_iteration_high_ns", phase.measured_iteration_high_ns, json::at_least(0));
  archive("transformation_ns", phase.transformation_ns, json::at_least(0));
  archive("predicted_transformation_ns", phase.predicted_transformation_ns, json::at_least(0));
  archive("samples_per_second", phase.samples_per_second, json::at_least(0));
  archive("predicted_peak_memory_bytes", phase.predicted_peak_memory_bytes, json::at_least(0));
  archive("measured_peak_memory_bytes", phase.measured_peak_memory_bytes, json::at_least(0));
  archive("cache", phase.cache);
  archive("cache_hit_fraction", phase.cache_hit_fraction, json::at_least(0));
  archive("cache_base_fraction", phase.cache_base_fraction, json::at_least(0));
  archive("predicted_timeline", phase.predicted_timeline);
  archive("measured_timeline", phase.measured_timeline);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Decision>& decision) {
  archive("step", decision.step, json::at_least(0));
  archive("frozen_blocks", decision.frozen_blocks, kFormerlyFrozenLayers);
  archive("explanation", decision.explanation);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Recovery>& recovery) {
  archive("step", recovery.step, json::at_least(0));
  archive("lost_steps", recovery.lost_steps, json::at_least(0));
  archive("world_size", recovery.world_size, json::at_least(1));
  archive("cause", recovery.cause);
  archive("source", recovery.source);
  archive("detection_ns", recovery.detection_ns, json::at_least(0));
  archive("forming_ns", recovery.rendezvous_ns, json::at_least(0));
  archive("restoring_ns", recovery.restoring_ns, json::at_least(0));
  archive("lost_work_ns", recovery.lost_work_ns, json::at_least(0));
  archive("choice", recovery.choice, json::MayBeMissing());
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, StepRecord>& record) {
  archive("step", record.step, json::at_least(0));
  archive("loss", record.loss);
  archive("learning_rate", record.learning_rate);
  archive("samples", record.samples, json::at_least(0));
  archive("tokens", record.tokens, json::at_least(0));
  archive("iteration_ns", record.iteration_ns, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NamedValue>& value) {
  archive("name", value.name);
  archive("value", value.value);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, EvaluationRecord>& record) {
  archive("step", record.step, json::at_least(0));
  archive("accuracy", record.accuracy);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NetSummary>& net) {
  archive("net", net.net);
  archive("device_classes", net.device_classes);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, RunSummary>& run) {
  archive("name", run.name);
  archive("method", run.method);
  archive("freeze", run.freeze);
  archive("model", run.model, json::MayBeMissing());
  archive("seed", run.seed);
  archive("world_size", run.world_size, json::at_least(1));
  archive("threads_per_rank", run.threads_per_rank, json::MayBeMissing{json::between(1, kMaxThreads)});
  archive("emulated", run.is_emulated, json::MayBeMissing());
  archive("epochs", run.epochs, json::at_least(0));
  archive("num_steps", run.num_steps, json::at_least(0));
  archive("global_batch_size", run.global_batch_size, json::at_least(1));
  archive("num_train_samples", run.num_train_samples, json::at_least(0));
  archive("num_test_samples", run.num_test_samples, json::at_least(0));
  archive("samples_per_second", run.samples_per_second, json::at_least(0));
  archive("wall_seconds", run.wall_seconds, json::at_least(0));
  archive("start_seconds", run.start_seconds, json::at_least(0));
  archive("evaluation_seconds", run.evaluation_seconds, json::at_least(0));
  archive("cache_note", run.cache_note);
  archive("test_metric", run.test_metric, json::Otherwise<std::string>{"accuracy"});
  archive("test_accuracy", run.test_accuracy);
  archive("test_accuracy_standard_error", run.test_accuracy_standard_error);
  archive("test_others", run.test_others, json::MayBeMissing());
  archive("phases", run.phases);
  archive("decisions", run.decisions);
  archive("recoveries", run.recoveries, json::MayBeMissing());
  archive("steps", run.steps);
  archive("evaluations", run.evaluations);
  archive("label_names", run.label_names);
  archive("test_items", run.test_items);
  archive("test_labels", run.test_labels);
  archive("test_predictions", run.test_predictions);
  archive("net", run.net);
}

}  // namespace frostpipe
