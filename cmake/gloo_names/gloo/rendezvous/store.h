#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {
// The interface that c10d's GlooStore overrides. Only the declaration is needed to read c10d's header: no object of it
// is made or destroyed outside libtorch_cpu.so.
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout);
};
}  // namespace gloo::rendezvous
