// A library without TLS: there are no contexts, and so no sessions.
#include "link/tls/tls_session.hpp"

#include "redislock/error.hpp"

#if !REDISLOCK_WITH_TLS

namespace redislock::detail {

void TlsContext::Free::operator()(ssl_ctx_st* /*context*/) const noexcept {}

TlsContext::Loaded TlsContext::load(const Tls& /*tls*/)
{
    throw LockError(Errc::unsupported,
                    "TLS: this library was built without it, see the CMake option REDISLOCK_WITH_TLS");
}

std::unique_ptr<TlsSession> TlsContext::session(const std::string& /*host*/) const
{
    return nullptr;
}

void TlsSession::Free::operator()(ssl_st* /*session*/) const noexcept {}

bool TlsSession::feed(std::span<const char> /*bytes*/) noexcept
{
    return false;
}

Transferred TlsSession::handshake() noexcept
{
    return {};
}

Transferred TlsSession::read(std::span<char> /*buffer*/) noexcept
{
    return {};
}

bool TlsSession::write(std::string_view /*bytes*/) noexcept
{
    return false;
}

std::string_view TlsSession::toSend() const noexcept
{
    return {};
}

void TlsSession::sent(std::size_t /*bytes*/) noexcept {}

TlsReport TlsSession::report() const
{
    return {};
}

} // namespace redislock::detail

#endif
