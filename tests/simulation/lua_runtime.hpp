/// @file
/// Runs the library's scripts as Redis does.
#pragma once

#include "simulation/keyspace.hpp"
#include "wire/reply.hpp"
#include "wire/script.hpp"

#include <string>
#include <unordered_map>
#include <vector>

struct lua_State;

namespace redislock::simulation {

/// An embedded Lua 5.1 with `redis.call`, `redis.pcall`, `redis.error_reply` and `redis.status_reply`, the conversions
/// between Lua values and replies that Redis makes, and its refusal of global variables. Each script is compiled once.
///
/// **Thread safety**: distinct objects: safe. Shared objects: unsafe.
class LuaRuntime {
public:
    using Words = std::vector<std::string>;

    LuaRuntime();
    ~LuaRuntime();
    LuaRuntime(const LuaRuntime&) = delete;
    LuaRuntime& operator=(const LuaRuntime&) = delete;

    /// Runs a script on some keys. Errors are replies. Call `Keyspace::beginScript()` first.
    Reply run(const detail::Script& script, Keyspace& keyspace, const Words& keys, const Words& arguments);

private:
    void compile(const detail::Script& script);

    lua_State* lua_;
    std::unordered_map<std::string_view, int> functions_; ///< by SHA1
};

} // namespace redislock::simulation
