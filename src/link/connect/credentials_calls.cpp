#include "link/connect/credentials_calls.hpp"

#include "values/system/process.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::uint64_t mostCalls = 4;

/// The calls that run in this process, below the process's fork generation.
std::atomic<std::uint64_t> callsRunning{0};

/// @return whether one more call may run.
bool beginCall() noexcept
{
    constexpr unsigned bits = 32;
    const std::uint64_t none = std::uint64_t{forkGeneration()} << bits;
    auto before = callsRunning.load(std::memory_order_relaxed);
    for (;;) {
        const auto own = before >> bits == none >> bits ? before : none; // the parent's threads are not in this process
        if (own - none >= mostCalls) {
            return false;
        }
        if (callsRunning.compare_exchange_weak(before, own + 1, std::memory_order_relaxed)) {
            return true;
        }
    }
}

void endCall() noexcept
{
    callsRunning.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace

/// What a call ended with.
struct CredentialsCalls::Answer {
    Credentials credentials;
    std::string why; ///< why there are none, if that is known already
};

/// The way from the threads to the client, while there is one.
struct CredentialsCalls::Line {
    std::mutex mutex;
    CredentialsCalls* calls; ///< null: the client has ended
};

/// What a thread has.
struct CredentialsCalls::Call {
    std::shared_ptr<const CredentialsProvider> provider;
    Endpoint endpoint;
    std::shared_ptr<Line> line;
    std::uint64_t number;
};

std::string refusalOf(const Credentials& credentials, std::chrono::system_clock::time_point now)
{
    if (credentials.password.empty()) {
        return "Config::credentials gave an empty password";
    }
    return credentials.validUntil <= now ? "Config::credentials gave credentials that have expired" : "";
}

TimePoint replacementTime(const Credentials& credentials, std::chrono::system_clock::time_point wallNow, TimePoint now)
{
    constexpr std::chrono::milliseconds least(100); // a function may give the same until its end
    if (credentials.validUntil == std::chrono::system_clock::time_point::max()) {
        return TimePoint::max();
    }
    const std::chrono::nanoseconds left = credentials.validUntil - wallNow;
    return saturatingAdd(now, std::max<std::chrono::nanoseconds>(left / 5 * 4, least));
}

std::string noAnswerIn(std::chrono::milliseconds time)
{
    return "no answer in " + std::to_string(time.count()) + " ms";
}

CredentialsCalls::CredentialsCalls(boost::asio::io_context& io, const Config& config, LastErrors& lastErrors)
    : io_(io),
      provider_(std::make_shared<const CredentialsProvider>(config.credentials)),
      timeout_(config.credentialsTimeout),
      lastErrors_(lastErrors),
      generation_(forkGeneration()),
      line_(std::make_shared<Line>()),
      timer_(io)
{
    line_->calls = this;
}

CredentialsCalls::~CredentialsCalls()
{
    if (generation_ == forkGeneration()) { // else a thread of the parent may have the mutex
        close();
    }
}

void CredentialsCalls::close()
{
    {
        const std::lock_guard lock(line_->mutex);
        line_->calls = nullptr;
    }
    timer_.cancel();
    waiting_.clear();
}

void CredentialsCalls::ask(const Endpoint& server, Handler handler)
{
    waiting_.push_back(std::move(handler));
    if (waiting_.size() > 1) {
        return;
    }
    ++number_;
    if (!beginCall()) {
        return ended(number_, {{}, std::to_string(mostCalls) + " calls of Config::credentials are still running"});
    }
    try {
        start(server);
    } catch (const std::system_error& e) { // no thread
        endCall();
        ended(number_, {{}, e.what()});
    } catch (...) { // out of memory
        endCall();
        timer_.cancel();
        waiting_.clear();
        throw;
    }
}

void CredentialsCalls::start(const Endpoint& server)
{
    auto call = std::make_unique<const Call>(Call{provider_, server, line_, number_});
    timer_.expires_after(timeout_);
    timer_.async_wait([this, number = number_](boost::system::error_code ec) {
        if (!ec) {
            ended(number, {{}, noAnswerIn(timeout_)});
        }
    });
    keepLoaded();
    const BlockedSignals none; // the thread inherits this
    std::thread([call = std::move(call)] { run(*call); }).detach();
}

/// On the call's own thread.
void CredentialsCalls::run(const Call& call) noexcept
{
    try {
        Answer answer;
        try {
            const auto ask = *call.provider; // a copy: calls may overlap
            answer.credentials = ask(call.endpoint);
        } catch (const std::exception& e) {
            answer.why = std::string("Config::credentials threw: ") + e.what();
        } catch (...) {
            answer.why = "Config::credentials threw";
        }
        const std::lock_guard lock(call.line->mutex);
        if (call.line->calls != nullptr) {
            boost::asio::post(call.line->calls->io_,
                              [line = call.line, number = call.number, answer = std::move(answer)]() mutable {
                                  if (line->calls != nullptr) {
                                      line->calls->ended(number, std::move(answer));
                                  }
                              });
        }
    } catch (...) { // out of memory: the call's time will be over
    }
    endCall();
}

void CredentialsCalls::ended(std::uint64_t number, Answer answer)
{
    lastErrors_.hide(answer.credentials.password);
    if (number != number_ || waiting_.empty()) {
        return; // too late
    }
    timer_.cancel();
    const auto waiting = std::exchange(waiting_, {});
    if (answer.why.empty()) {
        answer.why = refusalOf(answer.credentials, std::chrono::system_clock::now());
    }
    if (!answer.why.empty()) {
        lastErrors_.note(Cause::credentialsMissing, answer.why);
    }
    for (const auto& each : waiting) {
        each(answer.why.empty() ? &answer.credentials : nullptr);
    }
}

} // namespace redislock::detail
