#include "client/group/group_lock.hpp"
#include "client/lock/lock_access.hpp"
#include "client/lock/throwing.hpp"
#include "redislock/async_execute_with_lock.hpp"
#include "redislock/initiate.hpp"

#include <boost/system/system_error.hpp>

namespace redislock::detail {

namespace {

/// What an asynchronous call throws, with a message like that of the other calls.
class AsyncFailure final : public boost::system::system_error {
public:
    AsyncFailure(const boost::system::error_code& ec, const FailedCall& failed)
        : system_error(ec), text_(failed.error(ec))
    {
    }

    [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

private:
    LockError text_;
};

std::exception_ptr failure(const boost::system::error_code& ec, const FailedCall& failed)
{
    return std::make_exception_ptr(AsyncFailure(ec, failed));
}

} // namespace

std::exception_ptr failureOf(const NamedLock& lock, const char* verb, const boost::system::error_code& ec)
{
    return ec ? failure(ec, failedCall(lock, verb, ec)) : nullptr;
}

std::exception_ptr failureOf(const Lock& lock, const char* verb, const boost::system::error_code& ec)
{
    return failureOf(LockAccess::named(lock), verb, ec);
}

std::exception_ptr failureOf(const GroupLock& lock, const char* verb, const boost::system::error_code& ec)
{
    return failureOf(LockAccess::group(lock), verb, ec);
}

std::exception_ptr failureOf(const NamedCounter& counter, const char* verb, const boost::system::error_code& ec)
{
    return ec ? failure(ec, failedCall(counter, verb, ec)) : nullptr;
}

std::exception_ptr failureOf(const GroupState& group, const char* verb, const boost::system::error_code& ec)
{
    return ec ? failure(ec, group.failedCall(verb, ec)) : nullptr;
}

} // namespace redislock::detail
