#include "redislock/endpoint.hpp"

#include "values/printable.hpp"

namespace redislock {

std::string Endpoint::str() const
{
    if (!unixSocket.empty()) {
        return "unix:" + detail::printable(unixSocket, 256);
    }
    const bool isV6 = host.find(':') != std::string::npos;
    const std::string name = detail::printable(host, 256);
    return (isV6 ? '[' + name + ']' : name) + ':' + std::to_string(port);
}

} // namespace redislock
