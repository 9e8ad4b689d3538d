#pragma once
#include <chrono>
#include <string>

#include "base/descriptor.h"
#include "executor/elastic/job_environment.h"

namespace frostpipe {

/// How long a rank waits for a name that is to be known, and for a port that others are to open.
struct ConnectLimits {
  std::chrono::milliseconds unanswered = std::chrono::seconds(10);  // no name, no answer, or no way leads there
  std::chrono::milliseconds refused = std::chrono::minutes(5);  // the host is there, but who is to listen is not yet
};

/// The address of this host, in numbers, to which a rank's sockets for messages are bound: that of the interface that
/// was asked for; loopback in a job of one host; else the local end of the route to the master's address. Throws
/// InvalidInput where the interface that was asked for is none of this host's, and RuntimeFailure where the master's
/// address is not known within `limits.unanswered`, or is a name that stands for loopback here and for rank 0's host
/// elsewhere.
std::string own_address(const RankEnvironment& self, const ConnectLimits& limits = {});

/// Where rank 0 hosts the store (in numbers), and where the others look for it, whatever interface was asked for: at
/// the master's address, of which rank 0 has the local end of the route; on loopback in a job of one host. A store that
/// somebody else hosts is at the master's address. Throws RuntimeFailure as own_address() does.
std::string store_address(const RankEnvironment& self);

/// A socket bound to an address of this host (in numbers), which does not listen yet. Port 0: any that is free. Throws
/// RuntimeFailure.
Descriptor bound_socket(const std::string& address, int port);
/// Of a bound socket.
int port_of(const Descriptor& socket);

/// "10.0.0.7:29500", "[fd00::7]:29500".
std::string with_port(const std::string& address, int port);

/// A port of another host, or of this one, that somebody is to open.
struct Listener {
  std::string host;
  int port = 0;
  std::string what;        // "where rank 0 listens"
  std::string if_refused;  // what to do then
};

/// Waits until somebody listens at one of the host's addresses, and returns that address in numbers. Of a port that is
/// refused for longer than `unanswered` a line on stderr says so. Throws RuntimeFailure after the limits; both
/// sentences name this rank and host, the port, and what to do.
std::string wait_for_listener(int rank, const Listener& listener, const ConnectLimits& limits = {});

/// Two processes have the same where they share a host. `address` is own_address(): loopback addresses other than
/// 127.0.0.1 stand for hosts of their own, which tests use.
std::string host_identity(const std::string& address);
/// "b", as the host calls itself.
std::string host_name();

}  // namespace frostpipe
