#include "serving/server/worker/batch_buffer.h"

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The offset of each part, and the total size.
struct Offsets {
  std::size_t pixels, activation, answers, end;
  std::size_t num_tokens, num_pixels, num_answers;
  std::size_t activation_bytes;  // for one head

  explicit Offsets(const BatchShape& shape) {
    const auto requests = static_cast<std::size_t>(shape.max_requests);
    num_tokens = requests * shape.max_tokens;
    num_pixels = requests * shape.pixels;
    num_answers = requests * shape.heads * shape.answer_size;
    activation_bytes = num_tokens * static_cast<std::size_t>(shape.activation_bytes);
    pixels = aligned(num_tokens * sizeof(std::int32_t));
    activation = pixels + aligned(num_pixels * sizeof(float));
    answers = activation + aligned(shape.heads * activation_bytes);
    end = answers + aligned(num_answers * sizeof(double));
  }
};

template <class Value>
std::span<Value> values_at(std::span<std::byte> bytes, std::size_t offset, std::size_t count) {
  return {reinterpret_cast<Value*>(bytes.data() + offset), count};
}

}  // namespace

BatchBuffer BatchBuffer::make(const BatchShape& shape) {
  auto memory = SharedMemory::make(Offsets(shape).end);
  if (!memory) throw RuntimeFailure("shared memory for a batch: " + system_reason(ENOMEM));
  return {std::move(*memory), shape};
}

BatchBuffer BatchBuffer::open(Descriptor file, const BatchShape& shape) {
  auto memory = SharedMemory::open(std::move(file), Offsets(shape).end);
  if (!memory) throw RuntimeFailure("shared memory of a batch: " + system_reason(errno));
  return {std::move(*memory), shape};
}

std::span<std::int32_t> BatchBuffer::tokens() {
  return values_at<std::int32_t>(memory_.bytes(), 0, Offsets(shape_).num_tokens);
}

std::span<float> BatchBuffer::pixels() {
  const Offsets offsets(shape_);
  return values_at<float>(memory_.bytes(), offsets.pixels, offsets.num_pixels);
}

std::span<std::byte> BatchBuffer::activation(int head) {
  const Offsets offsets(shape_);
  return memory_.bytes().subspan(offsets.activation + head * offsets.activation_bytes, offsets.activation_bytes);
}

std::span<double> BatchBuffer::answers() {
  const Offsets offsets(shape_);
  return values_at<double>(memory_.bytes(), offsets.answers, offsets.num_answers);
}

}  // namespace frostpipe
