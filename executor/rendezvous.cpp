#include "executor/rendezvous.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace frostpipe {
namespace {

class RendezvousStore final : public Rendezvous {
 public:
  RendezvousStore() {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  int port() const override { return store_->getPort(); }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

std::unique_ptr<Rendezvous> open_rendezvous_store() { return std::make_unique<RendezvousStore>(); }

}  // namespace frostpipe
