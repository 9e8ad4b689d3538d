#pragma once
#include <atomic>
#include <cstddef>

namespace frostpipe {

/// Limits the memory of the bodies of all requests together. Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : left_(bytes) {}

  /// The part that one request has taken; returned by the destructor.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() { budget_.left_ += bytes_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    /// Takes more bytes. Returns false and takes nothing if fewer are left.
    bool add(std::size_t bytes) {
      std::size_t left = budget_.left_;
      do {
        if (left < bytes) return false;
      } while (!budget_.left_.compare_exchange_weak(left, left - bytes));
      bytes_ += bytes;
      return true;
    }

   private:
    BodyBudget& budget_;
    std::size_t bytes_ = 0;
  };

 private:
  std::atomic<std::size_t> left_;
};

}  // namespace frostpipe
