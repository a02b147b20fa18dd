#include "redislock/error.hpp"

#include <array>
#include <cstddef>

namespace redislock {

namespace {

struct Description {
    Errc code;
    const char* message;
    std::errc condition{}; ///< what a portable handler may compare with; zero: nothing of the standard's fits
};

constexpr std::array descriptions{
    Description{Errc::invalidArgument, "an argument is outside its documented range", std::errc::invalid_argument},
    Description{Errc::badConfig, "the configuration breaks a rule", std::errc::invalid_argument},
    Description{Errc::authFailed, "the server refused the user name or password, or wants one",
                std::errc::permission_denied},
    Description{Errc::permissionDenied, "the user lacks a permission that locks need", std::errc::permission_denied},
    Description{Errc::noSuchDatabase, "the server has no database of this number"},
    Description{Errc::notRedis, "what answered does not speak the Redis protocol", std::errc::protocol_error},
    Description{Errc::unsupported, "the server, or this version of the library, does not support this",
                std::errc::not_supported},
    Description{Errc::wrongType, "the name belongs to a key of another type, or to a lock of another kind"},
    Description{Errc::notHeld, "the caller has no hold to end", std::errc::operation_not_permitted},
    Description{Errc::lost, "the lock had been lost before"},
    Description{Errc::wouldDeadlock,
                "the call would wait for its own thread's hold, or on the client's thread, which must never wait",
                std::errc::resource_deadlock_would_occur},
    Description{Errc::unreachable, "no server was reached, or answered in time", std::errc::host_unreachable},
    Description{Errc::serverRefused,
                "the server refuses it for now (read-only, out of memory, loading, or short of replicas)",
                std::errc::resource_unavailable_try_again},
    Description{Errc::badReply, "the server gave a reply that cannot be", std::errc::protocol_error},
    Description{Errc::shutdown, "the client was shut down", std::errc::operation_canceled},
    Description{Errc::forked, "the client belongs to the process that this one was forked from"},
    Description{Errc::functionThrew, "the function that ran under the lock threw an exception"},
};

constexpr const Description* describe(int value) noexcept
{
    const bool known = value >= 1 && static_cast<std::size_t>(value) <= descriptions.size();
    return known ? &descriptions[static_cast<std::size_t>(value) - 1] : nullptr;
}

constexpr bool describesEachInOrder() noexcept
{
    for (const Description& description : descriptions) {
        if (describe(static_cast<int>(description.code)) != &description) {
            return false;
        }
    }
    return static_cast<std::size_t>(Errc::functionThrew) == descriptions.size();
}
static_assert(describesEachInOrder());

class Category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "redislock"; }

    [[nodiscard]] std::string message(int value) const override
    {
        const Description* description = describe(value);
        return description != nullptr ? description->message : "unknown error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override
    {
        const Description* description = describe(value);
        const bool portable = description != nullptr && description->condition != std::errc{};
        return portable ? std::make_error_condition(description->condition) : std::error_condition(value, *this);
    }
};

/// Never destroyed: codes are compared and printed by destructors of static objects too.
union Immortal {
    Category category;

    constexpr Immortal() : category{} {}
    ~Immortal() {} // NOLINT: leaves the category alone
    Immortal(const Immortal&) = delete;
    Immortal& operator=(const Immortal&) = delete;
};
constinit Immortal immortal;

} // namespace

const std::error_category& errorCategory() noexcept
{
    return immortal.category;
}

std::error_code make_error_code(Errc e) noexcept
{
    return {static_cast<int>(e), errorCategory()};
}

} // namespace redislock
