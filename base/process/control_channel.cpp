#include "base/process/control_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {

namespace {
constexpr std::size_t kLongestText = 64 << 10;
}

std::pair<ControlChannel, ControlChannel> ControlChannel::make_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw RuntimeFailure(std::string("a control channel to a child process cannot be made: ") + system_reason(errno));
  }
  fcntl(ends[1], F_SETFD, 0);
  return {ControlChannel(ends[0]), ControlChannel(ends[1])};
}

ControlChannel& ControlChannel::operator=(ControlChannel&& other) noexcept {
  std::swap(socket_, other.socket_);
  closed_ = other.closed_.exchange(closed_);
  return *this;
}

bool ControlChannel::send(const std::string& text, int descriptor) {
  FROSTPIPE_CHECK(!text.empty() && text.size() <= kLongestText,
                  "texts are short, and an empty one would look like the end");
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> attachment{};
  if (descriptor >= 0) {
    message.msg_control = attachment.data();
    message.msg_controllen = attachment.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (!closed_) {
    if (sendmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    if (errno == EINTR) continue;
    // ETOOMANYREFS means that too many descriptors are on their way, which the other end has not received yet.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS) return false;
    closed_ = true;
  }
  return false;
}

std::optional<ControlText> ControlChannel::receive(std::chrono::milliseconds wait) {
  if (closed_) return std::nullopt;
  pollfd entry{socket_.number(), POLLIN, 0};
  if (poll(&entry, 1, static_cast<int>(wait.count())) <= 0) return std::nullopt;
  std::array<char, kLongestText> text;  // uninitialized, since most texts are short
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> attachment{};
  message.msg_control = attachment.data();
  message.msg_controllen = attachment.size();
  const ssize_t got = recvmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (got <= 0) {
    closed_ = true;
    return std::nullopt;
  }
  int descriptor = -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return ControlText{std::string(text.data(), static_cast<std::size_t>(got)), Descriptor(descriptor)};
}

}  // namespace frostpipe
