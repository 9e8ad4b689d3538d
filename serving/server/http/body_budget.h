#pragma once
#include <atomic>
#include <cstddef>

namespace frostpipe {

/// The memory that the bodies of all requests together may take. Any thread may call any function.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : left_(bytes) {}

  /// What one request has of it, which it gives back at its end.
  class Share {
   public:
    explicit Share(BodyBudget& budget) : budget_(budget) {}
    ~Share() { budget_.left_ += bytes_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    /// False, and nothing more is taken, where so much is not left.
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
