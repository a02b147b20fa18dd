/// @file
/// Descriptors that are not the standard ones.
#pragma once

#include "redislock/error.hpp"
#include "values/system/process.hpp"

#include <boost/system/system_error.hpp>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace redislock::detail {

/// A program may have closed its standard descriptors: what it prints must not go to a server, and what it opens as its
/// standard input must not end a connection. So the library's own descriptors are greater.
inline constexpr int firstOwnDescriptor = STDERR_FILENO + 1;

/// While this exists, what the system opens gets no standard descriptor.
class StandardDescriptorsTaken {
public:
    StandardDescriptorsTaken() noexcept
    {
        for (int& filler : fillers_) {
            filler = ::eventfd(0, EFD_CLOEXEC);
            if (filler < 0 || filler >= firstOwnDescriptor) {
                break;
            }
        }
    }
    StandardDescriptorsTaken(const StandardDescriptorsTaken&) = delete;
    StandardDescriptorsTaken& operator=(const StandardDescriptorsTaken&) = delete;
    ~StandardDescriptorsTaken()
    {
        for (const int filler : fillers_) {
            if (filler >= 0) {
                ::close(filler);
            }
        }
    }

private:
    std::array<int, firstOwnDescriptor + 1> fillers_{-1, -1, -1, -1};
};

/// Makes what has descriptors, none of them a standard one. @throws LockError where the system refuses it. @param what
/// it is, for the message
template <class Make>
auto makeWithDescriptors(const std::string& what, Make make)
{
    const Uncancelled held;
    const StandardDescriptorsTaken taken;
    try {
        return make();
    } catch (const boost::system::system_error& e) {
        const bool isFull = e.code().value() == EMFILE || e.code().value() == ENFILE;
        throw LockError(isFull ? make_error_code(Cause::noDescriptor) : make_error_code(Errc::systemRefused), what,
                        e.what());
    }
}

/// Like Socket::open(), but a program that this process starts does not inherit the socket.
template <class Socket>
void openOwn(Socket& socket, const typename Socket::protocol_type& protocol, boost::system::error_code& ec)
{
    int handle = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (handle >= 0 && handle < firstOwnDescriptor) {
        const int low = handle;
        handle = ::fcntl(low, F_DUPFD_CLOEXEC, firstOwnDescriptor);
        ec.assign(errno, boost::system::system_category());
        ::close(low);
        errno = ec.value();
    }
    if (handle < 0) {
        ec.assign(errno, boost::system::system_category());
        return;
    }
    socket.assign(protocol, handle, ec);
    if (ec) {
        ::close(handle);
    }
}

} // namespace redislock::detail
