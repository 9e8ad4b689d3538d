#include "tests/executor/fake_gpu/fake_graphs.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/executor/fake_gpu/fake_memory.h"

namespace frostpipe::test {
namespace {

using Pieces = std::vector<std::function<void()>>;

struct Open {
  std::mutex mutex;
  std::atomic<Pieces*> graph{nullptr};
  static Open& instance() {
    static auto* const open = new Open;
    return *open;
  }
};

/// Closes the capture, also after an exception.
class OpenCapture {
 public:
  OpenCapture(Pieces& pieces, int pool) : before_(FakeMemory::contents()) {
    FakeMemory::use_pool(pool);
    Open::instance().graph = &pieces;
  }
  ~OpenCapture() {
    Open::instance().graph = nullptr;
    FakeMemory::use_pool(0);
    FakeMemory::undo(before_);
  }
  OpenCapture(const OpenCapture&) = delete;
  OpenCapture& operator=(const OpenCapture&) = delete;

 private:
  FakeMemory::Contents before_;
};

class FakeGraphs final : public DeviceGraphs {
 public:
  ~FakeGraphs() override { FakeMemory::give_up_pool(pool_); }
  void capture(const std::function<void()>& work) override {
    Pieces& pieces = graphs_.emplace_back();
    const OpenCapture open(pieces, pool_);
    work();
  }
  void replay(std::size_t graph) override {
    for (const auto& piece : graphs_.at(graph)) piece();
  }

 private:
  static int next_pool() {
    static int pool = 0;
    return ++pool;
  }
  const int pool_ = next_pool();
  std::vector<Pieces> graphs_;
};

}  // namespace

bool FakeCapture::is_open() { return Open::instance().graph != nullptr; }

void FakeCapture::add(std::function<void()> work) {
  Open& open = Open::instance();
  const std::lock_guard lock(open.mutex);
  open.graph.load()->push_back(std::move(work));
}

std::unique_ptr<DeviceGraphs> make_fake_graphs() { return std::make_unique<FakeGraphs>(); }

}  // namespace frostpipe::test
