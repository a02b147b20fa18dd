/// @file
/// The requests of clients.
#pragma once

#include "core/lock_kind.hpp"
#include "link/request/call.hpp"
#include "simulation/faults.hpp"
#include "wire/key_schema.hpp"
#include "wire/script.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::simulation {

/// A request, as the server reads it from its bytes.
struct Request {
    enum class Verb : std::uint8_t { script, del, subscribe, unsubscribe, ping, wait };

    Verb verb = Verb::script;
    bool byText = false;                      ///< EVAL instead of EVALSHA
    const detail::Script* script = nullptr;   ///< of a script
    const detail::KindTraits* kind = nullptr; ///< of a script of a lock
    std::string name;                         ///< of the first key, or the channel
    std::vector<std::string> otherKeys;       ///< of a script, or to be deleted too
    std::vector<std::string> arguments;       ///< of a script; the first one is the holder, where there is one; of WAIT
    bool confirms = false;                    ///< goes over the connection that waits for replicas
    std::uint64_t number = 0;                 ///< grows with each request that is made; copies keep it

    /// Whether the request runs that script of its kind of lock.
    [[nodiscard]] bool does(detail::ScriptUse detail::KindTraits::*use) const noexcept
    {
        return kind != nullptr && script == (kind->*use).script;
    }

    /// Makes the request run that script of a kind of lock.
    void run(const detail::KindTraits& of, detail::ScriptUse detail::KindTraits::*use, const std::string& lock,
             std::vector<std::string> with)
    {
        kind = &of;
        script = (of.*use).script;
        name = lock;
        otherKeys.clear();
        for (std::size_t i = 0; (of.*use).withCompanions && i < of.companionCount; ++i) {
            otherKeys.push_back(detail::prefixed(of.companions[i], lock));
        }
        arguments = std::move(with);
    }
};

/// The requests in what is sent.
std::vector<Request> requestsIn(std::string_view bytes);
/// Notes which kind of lock a request is about, if its call knows: several kinds share scripts.
void noteKind(const detail::Call& call, Request& request) noexcept;
/// One request for each lock of a request: a renewal may have several locks.
std::vector<Request> partsOf(const Request& request);
/// The state of the machine that made the call, while the call is under way.
Situation situationOf(const detail::Call& call, const Request& request) noexcept;

} // namespace redislock::simulation
