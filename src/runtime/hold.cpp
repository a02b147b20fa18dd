#include "runtime/hold.hpp"

#include "redislock/detail/protocol/command.hpp"
#include "redislock/detail/protocol/key_schema.hpp"
#include "redislock/detail/protocol/script.hpp"
#include "runtime/engine.hpp"

#include <charconv>
#include <string_view>

namespace redislock::detail {

namespace {

const Script& scriptOf(HoldCall::Verb verb)
{
    switch (verb) {
    case HoldCall::Verb::lock:
        return scripts::redisLockLock;
    case HoldCall::Verb::unlock:
        return scripts::redisLockUnlock;
    case HoldCall::Verb::renew:
        break;
    }
    return scripts::redisLockRenew;
}

std::size_t argumentsOf(HoldCall::Verb verb)
{
    return verb == HoldCall::Verb::lock ? 3 : verb == HoldCall::Verb::unlock ? 4 : 2;
}

/// Appends "<client>:<holder>" as an argument, without an allocation.
void appendHolder(std::string& out, const Hold& hold)
{
    char text[64];
    const auto& client = hold.lock->engine->id();
    auto* end = std::copy(client.begin(), client.end(), text);
    *end++ = ':';
    end = std::to_chars(end, text + sizeof text, static_cast<std::uint64_t>(hold.id)).ptr;
    appendArgument(out, std::string_view(text, static_cast<std::size_t>(end - text)));
}

/// Appends the name's channel as an argument, without an allocation.
void appendChannel(std::string& out, std::string_view name)
{
    appendHeader(out, '$', prefixedSize(lockChannelPrefix, name));
    appendPrefixed(out, lockChannelPrefix, name);
    out.append("\r\n", 2);
}

} // namespace

void intrusive_ptr_add_ref(Hold* hold) noexcept
{
    hold->references.fetch_add(1, std::memory_order_relaxed);
}

void intrusive_ptr_release(Hold* hold) noexcept
{
    if (hold->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete hold;
    }
}

void HoldCall::encode(std::string& out, Form by) const
{
    const Script& script = scriptOf(verb_);
    appendHeader(out, '*', 4 + argumentsOf(verb_));
    appendArgument(out, by == Form::bySha ? std::string_view("EVALSHA") : std::string_view("EVAL"));
    appendArgument(out, by == Form::bySha ? script.sha1 : script.text);
    appendArgument(out, std::string_view("1"));
    appendArgument(out, std::string_view(hold_->lock->name));
    appendHolder(out, *hold_);
    if (verb_ == Verb::unlock) {
        appendArgument(out, std::int64_t{count_});
        appendArgument(out, leaseMs_);
        appendChannel(out, hold_->lock->name);
        return;
    }
    appendArgument(out, leaseMs_);
    if (verb_ == Verb::lock) {
        appendArgument(out, std::int64_t{count_});
    }
}

/// What has ended is not renewed.
bool HoldCall::isWanted() const noexcept
{
    return verb_ != Verb::renew || hold_->phase.load(std::memory_order_acquire) == Hold::Phase::held;
}

void HoldCall::finished() noexcept
{
    hold_->lock->engine->callFinished(*this);
}

NamedLock::NamedLock(std::shared_ptr<Engine> e, std::string n) : engine(std::move(e)), name(std::move(n)) {}

std::string NamedLock::channel() const
{
    return lockChannel(name);
}

NamedLock::~NamedLock()
{
    engine->forgetName(*this);
}

} // namespace redislock::detail
