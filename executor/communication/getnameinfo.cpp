// Replaces the C library's getnameinfo in this process: addresses stay numbers.
//
// c10d's TCPStore asks for the name of every peer that it connects to, only to print it in its log, and has no option
// to leave that out. Where a name server does not answer, each connection would be held up for many seconds.
//
// LibTorch finds this definition first, because the program's own symbols come before those of its libraries. No header
// declares it and no source calls it: CMakeLists.txt tells the linker to take it from this library all the same.
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

extern "C" int getnameinfo(const sockaddr* address, socklen_t address_size, char* host, socklen_t host_size,
                           char* service, socklen_t service_size, int flags) {
  static const auto of_the_c_library = reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  return of_the_c_library(address, address_size, host, host_size, service, service_size, flags | NI_NUMERICHOST);
}
