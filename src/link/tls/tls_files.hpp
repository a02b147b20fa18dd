/// @file
/// Certificates, keys and authorities that may change on disk.
#pragma once

#include "link/tls/tls_session.hpp"
#include "redislock/clock.hpp"
#include "redislock/tls.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redislock::detail {

/// The TLS context of a client, read again from its files after they have changed. What does not fit is not used: the
/// last good context is.
///
/// **Thread safety**: none.
class TlsFiles {
public:
    /// How long a certificate and a key may not fit each other before that is told: they are replaced one by one.
    static constexpr std::chrono::seconds patience{5};

    /// @param warn told of files that do not fit, once for each state of them. @throws LockError `badConfig` if they do
    /// not fit now, `unsupported` in a library without TLS.
    TlsFiles(const Tls& tls, std::function<void(std::string)> warn);

    /// Looks at the files, and reads them if they are not as before.
    void look(TimePoint now);
    [[nodiscard]] const TlsContext& context() const noexcept { return *context_; }
    /// When to look again, though nothing else asks for it; max(): never.
    [[nodiscard]] TimePoint lookAgainAt() const noexcept { return tellAt_; }

private:
    /// What tells one state of a file from another.
    struct FileState {
        std::uint64_t device = 0;
        std::uint64_t file = 0;
        std::int64_t size = 0;
        std::int64_t changed = 0;

        friend bool operator==(const FileState&, const FileState&) = default;
    };

    [[nodiscard]] std::vector<FileState> states() const;

    const Tls tls_;
    const std::function<void(std::string)> warn_;
    std::shared_ptr<const TlsContext> context_;
    std::vector<FileState> read_; ///< the files' state when they were read last
    std::string trouble_;         ///< what did not fit then; empty: all did
    TimePoint tellAt_ = TimePoint::max();
};

} // namespace redislock::detail
