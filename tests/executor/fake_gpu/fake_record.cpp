#include "tests/executor/fake_gpu/fake_record.h"

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
  std::atomic<Pieces*> record{nullptr};
  static Open& instance() {
    static auto* const open = new Open;
    return *open;
  }
};

/// Closes it, come what may.
class OpenRecord {
 public:
  OpenRecord(Pieces& pieces, int pool) : before_(FakeMemory::contents()) {
    FakeMemory::use_pool(pool);
    Open::instance().record = &pieces;
  }
  ~OpenRecord() {
    Open::instance().record = nullptr;
    FakeMemory::use_pool(0);
    FakeMemory::undo(before_);
  }
  OpenRecord(const OpenRecord&) = delete;
  OpenRecord& operator=(const OpenRecord&) = delete;

 private:
  FakeMemory::Contents before_;
};

class FakeGraphs final : public RecordedWork {
 public:
  ~FakeGraphs() override { FakeMemory::give_up_pool(pool_); }
  void record(const std::function<void()>& work) override {
    Pieces& pieces = records_.emplace_back();
    const OpenRecord open(pieces, pool_);
    work();
  }
  void replay(std::size_t record) override {
    for (const auto& piece : records_.at(record)) piece();
  }

 private:
  static int next_pool() {
    static int pool = 0;
    return ++pool;
  }
  const int pool_ = next_pool();
  std::vector<Pieces> records_;
};

}  // namespace

bool FakeRecord::is_open() { return Open::instance().record != nullptr; }

void FakeRecord::add(std::function<void()> work) {
  Open& open = Open::instance();
  const std::lock_guard lock(open.mutex);
  open.record.load()->push_back(std::move(work));
}

std::unique_ptr<RecordedWork> make_fake_graphs() { return std::make_unique<FakeGraphs>(); }

}  // namespace frostpipe::test
