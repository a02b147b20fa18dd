/// @file
/// Why a connection could not be made, from what the system, the resolver and the other side say.
#pragma once

#include "redislock/endpoint.hpp"
#include "wire/fault.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace redislock::detail {

/// The reason for which the system made no connection.
inline Reason reasonOf(const boost::system::error_code& ec) noexcept
{
    switch (ec.value()) {
    case ECONNREFUSED:
        return Cause::connectionRefused;
    case ENOENT:
    case ENOTDIR:
        return Cause::socketNotFound;
    case EACCES:
    case EPERM:
        return Cause::accessDenied;
    case ENETUNREACH:
    case EHOSTUNREACH:
        return Cause::noRoute;
    case ETIMEDOUT:
        return Cause::connectTimedOut;
    default:
        return Cause::connectFailed;
    }
}

/// The cause for which the resolver found no address.
inline Cause causeOf(const boost::system::error_code& ec) noexcept
{
    const bool isUnknown = ec == boost::asio::error::host_not_found || ec == boost::asio::error::no_data;
    return isUnknown ? Cause::hostNotFound : Cause::lookupFailed;
}

/// An address as Stream::peer() gives it.
inline std::string_view bytesOf(const boost::asio::generic::stream_protocol::endpoint& address) noexcept
{
    return {reinterpret_cast<const char*>(address.data()), address.size()};
}

/// The TCP address in the system's form, as Stream::peer() gives it.
inline Endpoint tcpEndpoint(std::string_view bytes)
{
    boost::asio::ip::tcp::endpoint tcp;
    tcp.resize(bytes.size());
    std::memcpy(tcp.data(), bytes.data(), bytes.size());
    return Endpoint{tcp.address().to_string(), tcp.port(), {}};
}

/// What to put before the words about one of several addresses of an endpoint.
inline std::string whereIs(const Endpoint& endpoint, const boost::asio::generic::stream_protocol::endpoint& address)
{
    const bool isKnown = !endpoint.unixSocket.empty() || tcpEndpoint(bytesOf(address)) == endpoint;
    return isKnown ? std::string() : tcpEndpoint(bytesOf(address)).str() + ": ";
}

/// What may be wrong where a server ends the connection in the handshake of TLS, or says nothing.
inline constexpr std::string_view isTlsWanted = "does the server speak TLS on this port?";

/// Whether these are the first bytes of TLS: an alert, or a handshake.
inline bool isTls(std::string_view bytes) noexcept
{
    return bytes.size() > 1 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03;
}

} // namespace redislock::detail
