/// @file
/// One attempt to connect.
#pragma once

#include "link/connect/causes.hpp"
#include "link/connect/connector.hpp"
#include "link/connect/try.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::detail {

/// What helps where the certificate has names, and the address is a number.
inline constexpr const char* announcedBySentinel =
    "; a Sentinel announced this address: let the Sentinels announce host names (sentinel announce-hostnames yes), or "
    "use Config::addressMap, or the server_name of the certificate";
inline constexpr const char* announcedByNode =
    "; a node of the cluster announced this address: let the nodes announce host names (cluster-announce-hostname), or "
    "use Config::addressMap, or the server_name of the certificate";

/// One attempt: drives a ConnectMachine over Asio.
class Attempt : public std::enable_shared_from_this<Attempt> {
public:
    using Handler = std::function<void(Connected)>;

    /// @param at the address; nothing: that of the server
    Attempt(const void* whose, Connector& of, Handler handler, std::function<void(Cause)> reached,
            const std::optional<Endpoint>& at = std::nullopt)
        : whose_(whose),
          of_(of),
          isProbe_(at),
          endpoint_(at ? *at : of.endpoint_),
          handshake_(of.handshake_),
          handler_(std::move(handler)),
          reached_(std::move(reached)),
          resolver_(of.io_),
          timer_(of.io_),
          pause_(of.io_)
    {
    }

    /// @param limit of each of its parts. @param timeout to connect
    void start(TimePoint notBefore, std::chrono::milliseconds limit, std::chrono::milliseconds timeout)
    {
        notBefore_ = notBefore;
        limit_ = limit;
        timeout_ = timeout;
        const auto pause = notBefore - BootClock::now();
        if (pause <= pause.zero()) {
            return begin();
        }
        timer_.expires_after(pause);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                self->begin();
            }
        });
    }

    void hurry(const void* whose, TimePoint when)
    {
        if (whose == whose_ && isWaiting() && when < notBefore_) {
            start(when, limit_, timeout_);
        }
    }

    /// Another attempt of the same caller takes the place of this one, unless this one has begun.
    void giveWay(const void* whose)
    {
        if (whose == whose_ && isWaiting()) {
            cancel();
        }
    }

    void cancel()
    {
        handler_ = nullptr;
        end();
    }

    /// Ends this attempt, and begins another in its place. @return null: it had ended, or is about another address
    std::shared_ptr<Attempt> beginAgain()
    {
        if (!handler_ || isProbe_) {
            return nullptr;
        }
        auto again = std::make_shared<Attempt>(whose_, of_, std::move(handler_), reached_);
        cancel();
        again->limit_ = limit_;
        return again;
    }
    [[nodiscard]] std::chrono::milliseconds limit() const noexcept { return limit_; }

    /// The attempt has failed.
    void fail() { finish({Stream{}, Fault{}}); }

private:
    /// Whether its time has not come yet.
    [[nodiscard]] bool isWaiting() const noexcept
    {
        return handler_ && !asked_ && machine_.state() == ConnectMachine::State::idle;
    }

    void begin()
    {
        if (!isWaiting()) {
            return; // a timer that went off before it was set anew
        }
        try {
            of_.locator_ == nullptr || isProbe_ ? located() : locate();
        } catch (...) { // out of memory, perhaps for the timer that would end the attempt
            fail();
            throw;
        }
    }

    void locate()
    {
        asked_ = true;
        timer_.expires_after(timeout_);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec && !self->isLocated_) {
                self->finish({Stream{}, self->of_.locator_->absence()});
            }
        });
        of_.locator_->locate([self = shared_from_this()](const Endpoint* at, const Fault& why) {
            if (!self->handler_) {
                return;
            }
            if (at == nullptr) {
                return self->finish({Stream{}, why});
            }
            self->endpoint_ = *at;
            self->isLocated_ = true;
            self->timer_.cancel();
            try {
                self->located();
            } catch (...) { // out of memory
                self->fail();
                throw;
            }
        });
    }

    /// The address is known.
    void located() { of_.credentials_ ? askForCredentials() : beginWithin(timeout_); }

    /// In an outage the limit counts: renewals may go another way when the attempt has failed.
    void askForCredentials()
    {
        asked_ = true;
        if (of_.hasConnected_ && limit_ < of_.credentials_->timeout()) {
            timer_.expires_after(limit_);
            timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
                if (!ec && self->handler_ && self->machine_.state() == ConnectMachine::State::idle) {
                    self->of_.lastErrors_.note(Cause::credentialsMissing, noAnswerIn(self->limit_));
                    self->authenticate(nullptr);
                }
            });
        }
        of_.credentials_->ask(endpoint_,
                              [self = shared_from_this()](const Credentials* given) { self->authenticate(given); });
    }

    void authenticate(const Credentials* given)
    {
        if (!handler_) {
            return;
        }
        if (given == nullptr) {
            return finish({Stream{}, Fault{Failure::fatal, Cause::credentialsMissing}});
        }
        try {
            handshake_.username = given->username;
            handshake_.password = given->password;
            replaceAt_ = replacementTime(*given, std::chrono::system_clock::now(), BootClock::now());
            beginWithin(timeout_);
        } catch (...) { // out of memory
            fail();
            throw;
        }
    }

    void beginWithin(std::chrono::milliseconds timeout)
    {
        deadline_ = saturatingAdd(BootClock::now(), timeout);
        timer_.expires_after(timeout);
        timer_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
            if (!ec) {
                self->timeOver();
            }
        });
        step(Start{BootClock::now()});
    }

    /// Reports which step has taken too long.
    void timeOver()
    {
        if (machine_.state() == ConnectMachine::State::resolving) {
            return notFound(Cause::lookupFailed, "no answer in " + std::to_string(timeout_.count()) + " ms");
        }
        if (handler_) {
            const bool isSecuring = std::any_of(tries_.begin(), tries_.end(),
                                                [](const auto& one) { return one != nullptr && one->isSecuring(); });
            of_.lastErrors_.note(stage_, isSecuring ? isTlsWanted : std::string_view());
        }
        step(ConnectMachine::TimeOver{stage_});
    }

    /// @param stage what the attempt fails for if it comes no further
    void reach(Cause stage)
    {
        if (handler_ && stage_ != Cause::silent) {
            stage_ = stage;
            reached_(stage);
        }
    }

    void notFound(Cause why, const std::string& words)
    {
        if (handler_) {
            of_.lastErrors_.note(why, words);
            step(ConnectMachine::NotFound{why});
        }
    }

    void step(const ConnectMachine::Event& event)
    {
        if (handler_) {
            std::visit([this](const auto& action) { perform(action); }, machine_.resume(event));
        }
    }

    void perform(const ConnectMachine::Resolve& /*action*/)
    {
        if (!endpoint_.unixSocket.empty()) {
            addresses_.emplace_back(boost::asio::local::stream_protocol::endpoint(endpoint_.unixSocket));
            return resolved();
        }
        boost::system::error_code ec;
        const auto address = boost::asio::ip::make_address(endpoint_.host, ec);
        if (!ec) {
            addresses_.emplace_back(boost::asio::ip::tcp::endpoint(address, endpoint_.port));
            return resolved();
        }
        reach(Cause::lookupFailed);
        const auto found = [self = shared_from_this()](boost::system::error_code failed, const auto& results) {
            if (failed) {
                return self->notFound(causeOf(failed), failed.message());
            }
            for (const auto& result : results) {
                self->addresses_.emplace_back(result.endpoint());
            }
            self->resolved();
        };
        try {
            resolver_.async_resolve(endpoint_.host, std::to_string(endpoint_.port), found);
        } catch (const boost::system::system_error& e) { // no thread for it
            notFound(Cause::lookupFailed, e.what());
        }
    }

    void resolved()
    {
        if (!handler_) {
            return;
        }
        tries_.resize(addresses_.size());
        reach(Cause::connectTimedOut);
        step(ConnectMachine::Resolved{addresses_.size(), deadline_ - BootClock::now()});
    }

    void perform(const ConnectMachine::Open& action)
    {
        const auto self = shared_from_this();
        if (action.pause.count() > 0) {
            pause_.expires_after(action.pause);
            pause_.async_wait([self](boost::system::error_code ec) {
                if (!ec) {
                    self->step(ConnectMachine::PauseOver{});
                }
            });
        } else {
            pause_.cancel();
        }
        tryAddress(action.address);
    }

    void tryAddress(std::size_t address)
    {
        using Form = HandshakeMachine::Form;
        auto& one = tries_[address];
        one = std::make_unique<Try>(
            of_.io_, HandshakeMachine(handshake_, of_.hangUps_ % 2 == 0 ? Form::whole : Form::bare),
            of_.secured(endpoint_), of_.lastErrors_, whereIs(addresses_[address]), [this] { reach(Cause::silent); },
            [this, address](const std::optional<Fault>& fault) {
                fault ? failed(address, *fault) : step(ConnectMachine::Ready{address});
            });
        one->open(shared_from_this(), addresses_[address]);
    }

    /// What goes before words about an address.
    [[nodiscard]] std::string whereIs(const Try::Protocol::endpoint& address) const
    {
        const auto where = of_.locator_ != nullptr ? endpoint_.str() + ": " : std::string();
        const auto kind = handshake_.kind == ServerKind::sentinel ? "Sentinel " + endpoint_.str() + ": " : where;
        return kind + detail::whereIs(endpoint_, address);
    }

    /// A server that hung up may have refused an optional command in this way: the handshake's other form is tried
    /// next, at once after the first time. If that one fails for another reason, it was not the form.
    void failed(std::size_t address, const Fault& fault)
    {
        if (isHangUp(fault) && ++of_.hangUps_ == 1) {
            return boost::asio::post(of_.io_, [self = shared_from_this(), address] {
                if (self->handler_) {
                    self->tryAddress(address);
                }
            });
        }
        of_.hangUps_ = isHangUp(fault) || of_.hangUps_ != 1 ? of_.hangUps_ : 0;
        step(ConnectMachine::Ended{fault});
    }

    void perform(const ConnectMachine::Wait& /*action*/) {}

    void perform(const Done<Fault>& action) { finish({Stream{}, action.result}); }

    void perform(const Done<std::size_t>& action)
    {
        of_.hangUps_ = 0;
        const Reply* const slots = tries_[action.result]->slots();
        if (slots != nullptr && of_.locator_ != nullptr && !of_.locator_->told(*slots)) {
            return finish({Stream{}, Fault{Failure::fatal, Cause::otherCluster}});
        }
        if (const char* const what = tries_[action.result]->warning()) {
            of_.warnOnce(what);
        }
        finish({tries_[action.result]->take(), std::nullopt, replaceAt_});
    }

    /// What the server took from this client before it may take again: then its refusal is an outage.
    void finish(Connected result)
    {
        const bool mayPass =
            result.fault && (result.fault->error == Errc::authFailed || result.fault->error == Errc::tlsFailed);
        if (of_.hasConnected_ && mayPass && result.fault->failure == Failure::fatal) {
            result.fault->failure = Failure::notConnected;
        }
        of_.hasConnected_ = of_.hasConnected_ || !result.fault;
        const auto fault = result.fault;
        if (const auto handler = std::exchange(handler_, nullptr)) {
            end();
            explain(fault);
            handler(std::move(result));
            if (isLocated_) { // last: it may throw for lack of memory, and the handler must be called
                of_.locator_->tried(endpoint_, fault);
            }
        }
    }

    /// Says what helps, if it is known.
    void explain(const std::optional<Fault>& fault) noexcept
    try {
        if (isLocated_ && fault && fault->error == Reason(Cause::certificateNameMismatch)) {
            of_.lastErrors_.note(Cause::certificateNameMismatch,
                                 of_.lastErrors_.about(Cause::certificateNameMismatch).text +
                                     (handshake_.kind == ServerKind::node ? announcedByNode : announcedBySentinel));
        }
    } catch (const std::bad_alloc&) { // without it
    }

    void end() noexcept
    {
        timer_.cancel();
        pause_.cancel();
        try {
            resolver_.cancel();
        } catch (const std::bad_alloc&) { // what it finds comes to nobody
        }
        for (const auto& one : tries_) {
            if (one) {
                one->cancel();
            }
        }
    }

    const void* const whose_;
    Connector& of_;
    const bool isProbe_; ///< of a given address
    bool isLocated_ = false;
    Endpoint endpoint_;
    Handshake handshake_;
    ConnectMachine machine_;
    Handler handler_;
    const std::function<void(Cause)> reached_;
    Cause stage_ = Cause::connectTimedOut;
    boost::asio::ip::tcp::resolver resolver_;
    boost::asio::steady_timer timer_;
    boost::asio::steady_timer pause_; ///< until the next address
    TimePoint notBefore_{};
    std::chrono::milliseconds limit_{};
    std::chrono::milliseconds timeout_{};
    bool asked_ = false; ///< for the address, or for credentials
    TimePoint replaceAt_ = TimePoint::max();
    TimePoint deadline_{};
    std::vector<Try::Protocol::endpoint> addresses_;
    std::vector<std::unique_ptr<Try>> tries_; ///< by address; null: not begun
};

} // namespace redislock::detail
