#pragma once
#include <chrono>
#include <string>

#include "base/descriptor.h"
#include "executor/elastic/job_environment.h"

namespace frostpipe {

/// Limits of the time for which a rank waits for a host name to resolve, and for a port to open.
struct ConnectLimits {
  std::chrono::milliseconds unanswered = std::chrono::seconds(10);  // the name does not resolve, or the host does not
                                                                    // answer or has no route
  std::chrono::milliseconds refused = std::chrono::minutes(5);  // the host is up, but nothing listens at the port yet
};

/// Returns the numeric address of this host to which a rank's sockets for messages are bound: that of
/// RankEnvironment::interface if it is given; loopback if the job has one host; otherwise the local end of the route to
/// the master's address. Throws InvalidInput if this host lacks the interface, and RuntimeFailure if the master's
/// address does not resolve within `limits.unanswered`, if this host has no route to it, or if it is a name that
/// resolves to loopback here but may stand for rank 0's host elsewhere.
std::string own_address(const RankEnvironment& self, const ConnectLimits& limits = {});

/// Returns the address of the rendezvous store, at which rank 0 hosts it and the other ranks look for it, whatever the
/// interface: loopback if the job has one host; otherwise the master's address, which may be a name, or for rank 0 the
/// local end of the route to it. A store that an external process hosts is at the master's address. Throws
/// RuntimeFailure as own_address() does.
std::string store_address(const RankEnvironment& self);

/// Returns a socket that is bound to a numeric address of this host and does not listen yet. Port 0 lets the system
/// choose. Throws RuntimeFailure.
Descriptor bound_socket(const std::string& address, int port);
/// Returns the port to which a socket is bound.
int port_of(const Descriptor& socket);

/// Returns a text such as "10.0.0.7:29500" or "[fd00::7]:29500".
std::string with_port(const std::string& address, int port);

/// A port, of this host or another, that another process should open.
struct Listener {
  std::string host;
  int port = 0;
  std::string what;        // "where rank 0 listens"
  std::string if_refused;  // what to do if the connection is refused
};

/// Waits until a process listens at the port at one of the host's addresses, and returns that address in numbers. If
/// the connection is refused for longer than `limits.unanswered`, a line on stderr says so. Throws RuntimeFailure after
/// the limits. Both messages name this rank and host, the address and port, and what to do.
std::string wait_for_listener(int rank, const Listener& listener, const ConnectLimits& limits = {});

/// Returns a text that is equal for two processes if and only if they run on one host. `address` is own_address().
/// Loopback addresses other than 127.0.0.1 count as separate hosts, which tests use.
std::string host_identity(const std::string& address);
/// Returns the host's own name, such as "b".
std::string host_name();

}  // namespace frostpipe
