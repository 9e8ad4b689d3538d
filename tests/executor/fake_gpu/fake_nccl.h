#pragma once
#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace frostpipe::test {

/// A group of ranks with one fake GPU each, and NCCL's rules: tensors are on the device, tags are ignored, and
/// operations between two ranks in both directions happen in the order in which each rank issues them, a send not
/// before its receive. Ranks that issue them in different orders wait for ever, and so do ranks whose peer is lost,
/// until they abort the group: then everything goes on as if the data had arrived. An abort returns when no other group
/// waits.
c10::intrusive_ptr<c10d::Backend> make_fake_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                       int size);

}  // namespace frostpipe::test
