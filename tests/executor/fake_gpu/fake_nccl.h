#pragma once
#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace frostpipe::test {

/// A group of ranks that have a fake GPU each, with NCCL's rules: tensors are the device's, tags mean nothing, and
/// what two ranks send each other in either direction happens in the order in which each of them asked for it, a send
/// not before its receive. Ranks that ask in another order wait for ever, and so do those whose peer is lost, until
/// they abort the group: then all goes on as if it had come. An abort returns when no other group waits for anything.
c10::intrusive_ptr<c10d::Backend> make_fake_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                       int size);

}  // namespace frostpipe::test
