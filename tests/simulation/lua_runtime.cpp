#include "simulation/lua_runtime.hpp"

#include <lua.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace redislock::simulation {

namespace {

char keyspaceKey; ///< its address is the key under which the state keeps the keyspace

void pushText(lua_State* lua, const std::string& text)
{
    lua_pushlstring(lua, text.data(), text.size());
}

std::string textAt(lua_State* lua, int index)
{
    std::size_t size = 0;
    const char* text = lua_tolstring(lua, index, &size);
    return text == nullptr ? std::string() : std::string(text, size);
}

/// Pushes a table that stands for a reply that is not a value.
void pushTagged(lua_State* lua, const char* tag, const std::string& text)
{
    lua_createtable(lua, 0, 1);
    pushText(lua, text);
    lua_setfield(lua, -2, tag);
}

void pushReply(lua_State* lua, const Reply& reply)
{
    switch (reply.kind) {
    case Reply::Kind::nil:
        return lua_pushboolean(lua, 0);
    case Reply::Kind::integer:
        return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
    case Reply::Kind::text:
        return pushText(lua, reply.text);
    case Reply::Kind::status:
        return pushTagged(lua, "ok", reply.text);
    case Reply::Kind::error:
        return pushTagged(lua, "err", reply.text);
    case Reply::Kind::array:
        break;
    }
    lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
    for (std::size_t i = 0; i < reply.elements.size(); ++i) {
        pushReply(lua, reply.elements[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
}

/// Reads a table with that field as a reply of that kind.
bool readTagged(lua_State* lua, const char* tag, Reply::Kind kind, Reply& reply)
{
    lua_getfield(lua, -1, tag);
    const bool tagged = lua_type(lua, -1) == LUA_TSTRING;
    if (tagged) {
        reply = {kind, 0, textAt(lua, -1), {}};
    }
    lua_pop(lua, 1);
    return tagged;
}

/// The value on top of the stack as the reply that Redis sends.
Reply replyOnTop(lua_State* lua)
{
    Reply reply;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        return {Reply::Kind::text, 0, textAt(lua, -1), {}};
    case LUA_TNUMBER:
        return {Reply::Kind::integer, static_cast<std::int64_t>(lua_tonumber(lua, -1)), {}, {}};
    case LUA_TBOOLEAN:
        return lua_toboolean(lua, -1) != 0 ? Reply{Reply::Kind::integer, 1, {}, {}} : reply;
    case LUA_TTABLE:
        break;
    default:
        return reply;
    }
    if (readTagged(lua, "err", Reply::Kind::error, reply) || readTagged(lua, "ok", Reply::Kind::status, reply)) {
        return reply;
    }
    reply.kind = Reply::Kind::array;
    for (int i = 1;; ++i) {
        lua_rawgeti(lua, -1, i);
        const bool end = lua_isnil(lua, -1);
        if (!end) {
            reply.elements.push_back(replyOnTop(lua));
        }
        lua_pop(lua, 1);
        if (end) {
            return reply;
        }
    }
}

/// A number as Redis writes it for a command.
std::string digitsOf(lua_Number number)
{
    constexpr lua_Number exact = 1e15; // up to here the digits of a whole number are those of an integer
    if (number > -exact && number < exact && number == std::trunc(number)) {
        return std::to_string(static_cast<std::int64_t>(number));
    }
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", number);
    return digits;
}

/// Runs the command that is on the stack and leaves its reply there.
/// @return whether it is an error. No C++ object is alive when the caller raises the error, which is a jump.
bool execute(lua_State* lua)
{
    Keyspace::Words words;
    words.reserve(static_cast<std::size_t>(lua_gettop(lua)));
    for (int i = 1; i <= lua_gettop(lua); ++i) {
        if (lua_type(lua, i) == LUA_TNUMBER) {
            words.push_back(digitsOf(lua_tonumber(lua, i)));
        } else {
            words.push_back(textAt(lua, i));
        }
    }
    lua_pushlightuserdata(lua, &keyspaceKey);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    auto* keyspace = static_cast<Keyspace*>(lua_touserdata(lua, -1));
    const Reply reply = keyspace->execute(words);
    pushReply(lua, reply);
    return reply.isError();
}

int redisCall(lua_State* lua)
{
    return execute(lua) ? lua_error(lua) : 1;
}

int redisPcall(lua_State* lua)
{
    execute(lua);
    return 1;
}

int errorReply(lua_State* lua)
{
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "err");
    return 1;
}

int statusReply(lua_State* lua)
{
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

void openLibraries(lua_State* lua)
{
    constexpr luaL_Reg libraries[] = {{"", luaopen_base},
                                      {LUA_TABLIBNAME, luaopen_table},
                                      {LUA_STRLIBNAME, luaopen_string},
                                      {LUA_MATHLIBNAME, luaopen_math}};
    for (const auto& library : libraries) {
        lua_pushcfunction(lua, library.func);
        lua_pushstring(lua, library.name);
        lua_call(lua, 1, 0);
    }
    constexpr luaL_Reg functions[] = {{"call", redisCall},
                                      {"pcall", redisPcall},
                                      {"error_reply", errorReply},
                                      {"status_reply", statusReply},
                                      {nullptr, nullptr}};
    luaL_register(lua, "redis", functions);
    lua_pop(lua, 1);
}

constexpr const char* noGlobals = R"(
setmetatable(_G, {
    __newindex = function(_, name) error('ERR Attempt to modify a readonly table: ' .. tostring(name), 0) end,
    __index = function(_, name) error('ERR Script attempted to access nonexistent global ' .. tostring(name), 0) end,
})
)";

void setTable(lua_State* lua, const char* name, const LuaRuntime::Words& words)
{
    lua_pushstring(lua, name);
    lua_createtable(lua, static_cast<int>(words.size()), 0);
    for (std::size_t i = 0; i < words.size(); ++i) {
        pushText(lua, words[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

} // namespace

LuaRuntime::LuaRuntime() : lua_(luaL_newstate())
{
    if (lua_ == nullptr) {
        throw std::runtime_error("no memory for Lua");
    }
    openLibraries(lua_);
    if (luaL_dostring(lua_, noGlobals) != 0) {
        throw std::runtime_error(textAt(lua_, -1));
    }
}

LuaRuntime::~LuaRuntime()
{
    lua_close(lua_);
}

void LuaRuntime::compile(const detail::Script& script)
{
    const std::string chunk = '@' + std::string(script.name);
    const std::string text = script.text();
    if (luaL_loadbuffer(lua_, text.data(), text.size(), chunk.c_str()) != 0) {
        throw std::runtime_error(textAt(lua_, -1));
    }
    functions_.emplace(script.sha1, luaL_ref(lua_, LUA_REGISTRYINDEX));
}

Reply LuaRuntime::run(const detail::Script& script, Keyspace& keyspace, const Words& keys, const Words& arguments)
{
    if (!functions_.contains(script.sha1)) {
        compile(script);
    }
    lua_pushlightuserdata(lua_, &keyspaceKey);
    lua_pushlightuserdata(lua_, &keyspace);
    lua_rawset(lua_, LUA_REGISTRYINDEX);
    setTable(lua_, "KEYS", keys);
    setTable(lua_, "ARGV", arguments);
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, functions_.at(script.sha1));
    const bool failed = lua_pcall(lua_, 0, 1, 0) != 0;
    Reply reply = replyOnTop(lua_);
    if (failed && !reply.isError()) { // a mistake of the script itself
        reply = {Reply::Kind::error, 0, "ERR " + textAt(lua_, -1), {}};
    }
    lua_settop(lua_, 0);
    return reply;
}

} // namespace redislock::simulation
