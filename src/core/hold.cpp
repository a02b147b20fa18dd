#include "core/hold.hpp"

#include "core/core.hpp"
#include "wire/command.hpp"
#include "wire/key_schema.hpp"
#include "wire/script.hpp"

#include <charconv>
#include <new>
#include <string_view>

namespace redislock::detail {

namespace {

const ScriptUse& scriptOf(const KindTraits& kind, HoldCall::Verb verb)
{
    return verb == HoldCall::Verb::lock ? kind.lock : kind.unlock;
}

std::size_t argumentsOf(const KindTraits& kind, HoldCall::Verb verb)
{
    return verb == HoldCall::Verb::lock ? kind.lockArguments : 4;
}

/// Appends the holder's name in Redis, "<client>:<number>" and the kind's suffix, as an argument, without an
/// allocation.
void appendHolder(std::string& out, const std::string& client, HolderId id, std::string_view suffix)
{
    char text[64];
    auto* end = std::copy(client.begin(), client.end(), text);
    *end++ = ':';
    end = std::to_chars(end, text + sizeof text, static_cast<std::uint64_t>(id)).ptr;
    end = std::copy(suffix.begin(), suffix.end(), end);
    appendArgument(out, std::string_view(text, static_cast<std::size_t>(end - text)));
}

/// Appends the name's channel, or the prefix of its waiters' channels, as an argument, without an allocation.
void appendChannel(std::string& out, const KindTraits& kind, std::string_view name, std::string_view mark, bool quiet)
{
    if (quiet || kind.channelPrefix.empty()) {
        return appendArgument(out, std::string_view());
    }
    const bool isBeginning = kind.asking == Asking::queue;
    appendHeader(out, '$', mark.size() + prefixedSize(kind.channelPrefix, name) + (isBeginning ? 1 : 0));
    out.append(mark);
    appendPrefixed(out, kind.channelPrefix, name);
    out.append(isBeginning ? ":\r\n" : "\r\n");
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

void appendHolder(std::string& out, const Hold& hold)
{
    appendHolder(out, hold.lock->core->id, hold.id, hold.lock->traits().holderSuffix);
}

std::vector<std::string> keysOf(const NamedLock& named, const ScriptUse& use)
{
    std::vector keys{named.name};
    const KindTraits& kind = named.traits();
    for (std::size_t i = 0; use.withCompanions && i < kind.companionCount; ++i) {
        keys.push_back(prefixed(kind.companions[i], named.name));
    }
    return keys;
}

Call::Subject HoldCall::subject() const
{
    const ScriptUse& use = scriptOf(hold_->lock->traits(), verb_);
    return {use.script, keyPatterns(keysOf(*hold_->lock, use))};
}

void HoldCall::encode(std::string& out, Form by)
{
    const NamedLock& named = *hold_->lock;
    const KindTraits& kind = named.traits();
    const ScriptUse& use = scriptOf(kind, verb_);
    const std::size_t keys = 1 + (use.withCompanions ? kind.companionCount : 0);
    appendScript(out, *use.script, by, keys, argumentsOf(kind, verb_));
    appendArgument(out, std::string_view(named.name));
    if (use.withCompanions) {
        appendCompanions(out, kind, named.name);
    }
    const auto& client = named.core->id;
    appendHolder(out, client, hold_->id, kind.holderSuffix);
    if (verb_ == Verb::unlock) {
        appendArgument(out, std::int64_t{count_});
        appendArgument(out, leaseMs_);
        return appendChannel(out, kind, named.name, named.core->channelMark, quiet);
    }
    appendArgument(out, leaseMs_);
    appendArgument(out, std::int64_t{count_});
    if (kind.keepsPlace) {
        appendArgument(out, std::int64_t{place.count()});
    }
    if (kind.asking == Asking::queue) {
        appendChannel(out, kind, named.name, named.core->channelMark, false);
        appendArgument(out, isHeard ? std::int64_t{++sends} : 0);
    } else if (kind.asking == Asking::each) {
        writer == HolderId{} ? appendArgument(out, std::string_view())
                             : appendHolder(out, client, writer, writerSuffix);
    }
}

Slot HoldCall::slot() const noexcept
{
    return hold_->lock->slot;
}

void Waiter::look() noexcept
{
    wakeOperation(hold->lock->core->port, *call, run);
}

NamedLock::NamedLock(std::shared_ptr<Port> p, Core& c, const KindTraits& t, std::string n)
    : core(std::move(p), &c),
      name(std::move(n)),
      kind(t.kind),
      slot(c.config.cluster.empty() ? noSlot : slotOf(name)),
      traits_(t)
{
}

std::string NamedLock::channel() const
{
    const KindTraits& own = traits();
    if (own.channelPrefix.empty()) {
        return {};
    }
    auto channel = std::string(core->channelMark).append(prefixed(own.channelPrefix, name));
    return own.asking == Asking::queue ? channel + ":" : channel;
}

Turn* NamedLock::takeTurns() noexcept
{
    if (turn == nullptr && traits().asking != Asking::queue) {
        const bool isShared = traits().asking == Asking::first && !traits().channelPrefix.empty();
        const auto audience = isShared ? Turn::Audience::listeners : Turn::Audience::none;
        turn.reset(new (std::nothrow) Turn(core->config.turn, audience));
        if (turn != nullptr) {
            core->remember(*this);
        }
    }
    return turn.get();
}

NamedLock::~NamedLock()
{
    if (!core->port.isForked()) {
        const Inside inside(core->port);
        core->forget(*this);
    }
}

std::shared_ptr<NamedLock> NamedLock::of(const std::shared_ptr<Port>& port, Core& core, const KindTraits& traits,
                                         std::string name)
{
    auto fresh = std::make_shared<NamedLock>(port, core, traits, std::move(name));
    if (port->isForked()) {
        return fresh; // can only give errors; the mutex may be locked by a thread of the parent process
    }
    std::shared_ptr<NamedLock> known; // destroyed after the mutex is unlocked
    const Inside inside(*port);
    known = core.knownOrAdd(*fresh);
    return known ? known : fresh;
}

} // namespace redislock::detail
