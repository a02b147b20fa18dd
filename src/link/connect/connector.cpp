#include "link/connect/connector.hpp"

#include "link/connect/causes.hpp"
#include "link/connect/own_descriptors.hpp"
#include "wire/codec.hpp"
#include "wire/command.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::detail {

namespace asio = boost::asio;

/// Tries one address: drives a HandshakeMachine over Asio.
///
/// Belongs to an attempt, which `keep` keeps alive while an operation is under way. After its end it tells nothing
/// more.
class Try {
public:
    using Protocol = asio::generic::stream_protocol;
    using End = std::function<void(const std::optional<Fault>&)>;

    Try(asio::io_context& io, const HandshakeMachine& machine, LastErrors& lastErrors, std::string where,
        std::function<void()> taken, End end)
        : socket_(io),
          machine_(machine),
          lastErrors_(lastErrors),
          where_(std::move(where)),
          taken_(std::move(taken)),
          end_(std::move(end))
    {
    }

    void open(const std::shared_ptr<void>& keep, const Protocol::endpoint& address)
    {
        boost::system::error_code ec;
        openOwn(socket_, address.protocol(), ec);
        if (ec) {
            return asio::post(socket_.get_executor(), [this, keep, ec] { notOpened(keep, ec); });
        }
        socket_.async_connect(address, [this, keep](boost::system::error_code failed) {
            if (failed) {
                return notOpened(keep, failed);
            }
            taken_();
            step(keep, HandshakeMachine::Opened{});
        });
    }

    /// The connection, once it is usable.
    Stream take()
    {
        boost::system::error_code ignored;
        return Stream(socket_.release(ignored));
    }

    void cancel()
    {
        boost::system::error_code ignored;
        end_ = nullptr;
        socket_.close(ignored);
    }

private:
    void notOpened(const std::shared_ptr<void>& keep, const boost::system::error_code& ec)
    {
        if (end_) {
            const Reason why = reasonOf(ec);
            lastErrors_.note(why, where_ + ec.message());
            step(keep, HandshakeMachine::Closed{why});
        }
    }

    /// @return whether the next answer is to be read.
    bool step(const std::shared_ptr<void>& keep, const HandshakeMachine::Event& event)
    {
        if (!end_) {
            return false;
        }
        if (const auto* reply = std::get_if<Reply>(&event)) {
            lastErrors_.noteReply(*reply);
        }
        const auto action = machine_.resume(event);
        if (std::holds_alternative<HandshakeMachine::Listen>(action)) {
            return true;
        }
        if (const auto* say = std::get_if<HandshakeMachine::Say>(&action)) {
            send(keep, say->commands);
            return false;
        }
        const auto* failed = std::get_if<Done<Fault>>(&action);
        const auto end = std::exchange(end_, nullptr);
        if (failed != nullptr) {
            if (const auto* reply = std::get_if<Reply>(&event)) {
                lastErrors_.noteReply(failed->result.error, reply->text);
            }
            boost::system::error_code ignored;
            socket_.close(ignored);
        }
        end(failed != nullptr ? std::optional(failed->result) : std::nullopt);
        return false;
    }

    void send(const std::shared_ptr<void>& keep, const std::vector<HandshakeMachine::Command>& commands)
    {
        for (const auto& command : commands) {
            appendHeader(request_, '*', command.size());
            for (const auto& argument : command) {
                appendArgument(request_, argument);
            }
        }
        asio::async_write(socket_, asio::buffer(request_), [this, keep](boost::system::error_code failed, std::size_t) {
            failed ? (void)step(keep, HandshakeMachine::Closed{}) : read(keep);
        });
    }

    void read(const std::shared_ptr<void>& keep)
    {
        socket_.async_read_some(asio::buffer(buffer_), [this, keep](boost::system::error_code failed, std::size_t n) {
            failed ? (void)step(keep, HandshakeMachine::Closed{}) : received(keep, n);
        });
    }

    void received(const std::shared_ptr<void>& keep, std::size_t bytes)
    {
        reader_.feed({buffer_.data(), bytes});
        for (;;) {
            Reply reply;
            const auto status = reader_.next(reply);
            if (status == ReplyReader::Status::needMore) {
                return read(keep);
            }
            // one request, one reply: a server that sends more is not Redis
            Reply surplus;
            const bool isGood =
                status == ReplyReader::Status::complete && (machine_.state() != HandshakeMachine::State::ping ||
                                                            reader_.next(surplus) == ReplyReader::Status::needMore);
            if (!isGood) {
                return garbled(keep, {buffer_.data(), bytes});
            }
            if (!step(keep, std::move(reply))) {
                return;
            }
        }
    }

    void garbled(const std::shared_ptr<void>& keep, std::string_view bytes)
    {
        const Reason why = isTls(bytes) ? Reason(Cause::tlsSpoken) : Reason(Errc::notRedis);
        if (why == Reason(Errc::notRedis)) {
            lastErrors_.noteReply(why, bytes);
        }
        step(keep, HandshakeMachine::Garbled{why});
    }

    Protocol::socket socket_;
    HandshakeMachine machine_;
    LastErrors& lastErrors_;
    const std::string where_;           ///< the address, if it is not the endpoint's
    const std::function<void()> taken_; ///< called when the connection is open
    End end_;
    std::string request_;
    std::array<char, 4096> buffer_{};
    ReplyReader reader_;
};

/// One attempt: drives a ConnectMachine over Asio.
class Attempt : public std::enable_shared_from_this<Attempt> {
public:
    using Handler = std::function<void(Connected)>;

    Attempt(const void* whose, asio::io_context& io, const Endpoint& endpoint, const Handshake& handshake,
            const DemotedAddresses& demoted, std::size_t& hangUps, LastErrors& lastErrors, Handler handler,
            std::function<void(Cause)> reached)
        : whose_(whose),
          io_(io),
          endpoint_(endpoint),
          handshake_(handshake),
          demoted_(demoted),
          hangUps_(hangUps),
          lastErrors_(lastErrors),
          handler_(std::move(handler)),
          reached_(std::move(reached)),
          resolver_(io),
          timer_(io),
          pause_(io)
    {
    }

    void start(TimePoint notBefore, std::chrono::milliseconds timeout)
    {
        notBefore_ = notBefore;
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
        if (whose == whose_ && handler_ && machine_.state() == ConnectMachine::State::idle && when < notBefore_) {
            start(when, timeout_);
        }
    }

    void cancel()
    {
        handler_ = nullptr;
        end();
    }

    /// The attempt has failed.
    void fail() { finish({Stream{}, Fault{}}); }

private:
    void begin()
    {
        if (machine_.state() != ConnectMachine::State::idle || !handler_) {
            return; // a timer that went off before it was set anew
        }
        try {
            beginWithin(timeout_);
        } catch (...) { // out of memory, perhaps for the timer that would end the attempt
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
            lastErrors_.note(stage_, {});
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
            lastErrors_.note(why, words);
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
            addresses_.emplace_back(asio::local::stream_protocol::endpoint(endpoint_.unixSocket));
            return resolved();
        }
        boost::system::error_code ec;
        const auto address = asio::ip::make_address(endpoint_.host, ec);
        if (!ec) {
            addresses_.emplace_back(asio::ip::tcp::endpoint(address, endpoint_.port));
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
        demoted_.putLast(addresses_, [](const auto& address) {
            return std::string_view(reinterpret_cast<const char*>(address.data()), address.size());
        });
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
            io_, HandshakeMachine(handshake_, hangUps_ % 2 == 0 ? Form::whole : Form::bare), lastErrors_,
            whereIs(endpoint_, addresses_[address]), [this] { reach(Cause::silent); },
            [this, address](const std::optional<Fault>& fault) {
                fault ? failed(address, *fault) : step(ConnectMachine::Ready{address});
            });
        one->open(shared_from_this(), addresses_[address]);
    }

    /// A server that hung up may have refused an optional command in this way: the handshake's other form is tried
    /// next, at once after the first time. If that one fails for another reason, it was not the form.
    void failed(std::size_t address, const Fault& fault)
    {
        if (isHangUp(fault) && ++hangUps_ == 1) {
            return asio::post(io_, [self = shared_from_this(), address] {
                if (self->handler_) {
                    self->tryAddress(address);
                }
            });
        }
        hangUps_ = isHangUp(fault) || hangUps_ != 1 ? hangUps_ : 0;
        step(ConnectMachine::Ended{fault});
    }

    void perform(const ConnectMachine::Wait& /*action*/) {}

    void perform(const Done<Fault>& action) { finish({Stream{}, action.result}); }

    void perform(const Done<std::size_t>& action)
    {
        hangUps_ = 0;
        finish({tries_[action.result]->take(), std::nullopt});
    }

    void finish(Connected result)
    {
        if (const auto handler = std::exchange(handler_, nullptr)) {
            end();
            handler(std::move(result));
        }
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
    asio::io_context& io_;
    const Endpoint& endpoint_;
    const Handshake& handshake_;
    const DemotedAddresses& demoted_;
    std::size_t& hangUps_;
    LastErrors& lastErrors_;
    ConnectMachine machine_;
    Handler handler_;
    const std::function<void(Cause)> reached_;
    Cause stage_ = Cause::connectTimedOut;
    asio::ip::tcp::resolver resolver_;
    asio::steady_timer timer_;
    asio::steady_timer pause_; ///< until the next address
    TimePoint notBefore_{};
    std::chrono::milliseconds timeout_{};
    TimePoint deadline_{};
    std::vector<Try::Protocol::endpoint> addresses_;
    std::vector<std::unique_ptr<Try>> tries_; ///< by address; null: not begun
};

void Connector::connect(const void* whose, TimePoint notBefore, std::chrono::milliseconds limit,
                        std::function<void(Connected)> handler, std::function<void(Cause)> reached)
{
    asio::post(io_, [this, whose, notBefore, limit, handler = std::move(handler), reached = std::move(reached)]() {
        if (closed_) {
            return;
        }
        std::shared_ptr<Attempt> attempt;
        try {
            attempt = std::make_shared<Attempt>(whose, io_, endpoint_, handshake_, demoted_, hangUps_, lastErrors_,
                                                handler, reached);
            std::erase_if(attempts_, [](const auto& past) { return past.expired(); });
            attempts_.push_back(attempt);
            attempt->start(notBefore, std::min(limit, timeout_));
        } catch (...) { // out of memory: nobody else would report the attempt's end
            attempt ? attempt->fail() : handler({Stream{}, Fault{}});
            throw;
        }
    });
}

void Connector::hurry(const void* whose, TimePoint when)
{
    asio::post(io_, [this, whose, when] {
        for (const auto& each : attempts_) {
            if (const auto attempt = each.lock()) {
                attempt->hurry(whose, when);
            }
        }
    });
}

void Connector::demoted(std::string address)
{
    asio::post(io_, [this, address = std::move(address)]() mutable { demoted_.note(std::move(address)); });
}

void Connector::recover()
{
    endAttempts(&Attempt::fail);
}

void Connector::close()
{
    closed_ = true;
    endAttempts(&Attempt::cancel);
}

void Connector::endAttempts(void (Attempt::*how)())
{
    while (!attempts_.empty()) {
        const auto running = attempts_.back().lock();
        attempts_.pop_back();
        if (running != nullptr) {
            (running.get()->*how)();
        }
    }
}

} // namespace redislock::detail
