// Every holder that Redisson can write is read as it was written; of any other bytes nothing is made that they are not.
#include "core/lock_fields.hpp"
#include "fuzz/fuzz_target.hpp"
#include "support/replies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redislock::test {
namespace {

using namespace detail;

constexpr std::string_view client = "0a1f96fc-15c1-4297-a056-e1c973a409fe";
constexpr std::string_view writing = ":write";

/// A holder of any number, with the id of a transaction or without.
void checkWritten(Input input)
{
    std::uint64_t drawn = 0;
    for (int i = 0; i < 8; ++i) {
        drawn = drawn << 8U | input.byte();
    }
    const bool writes = input.byte() % 2 == 1;
    std::string tail(input.rest());
    if (!tail.empty()) {
        tail.insert(0, ":");
    }
    if (!writes && (tail == writing || tail.starts_with(":write:"))) {
        return; // it is a writer's
    }
    const auto bare = std::string(client) + ":" + std::to_string(static_cast<std::int64_t>(drawn));
    const auto holder = holderNamed(bare + std::string(writes ? writing : "") + tail);
    require(holder && holder->name == bare + tail, "a holder has the name that was written");
    require(holder->clientId == client && holder->writes == writes, "a holder is of its client, and reads or writes");
}

/// Whether the holder is what the text says.
bool isOf(const LockHolder& holder, std::string_view field)
{
    if (!field.starts_with(holder.clientId + ":")) {
        return false;
    }
    if (!holder.writes) {
        return field == holder.name;
    }
    const auto at = field.find(writing);
    return at != field.npos && holder.name == std::string(field).erase(at, writing.size());
}

/// A hash with any fields and values, each up to a line's end.
void checkHash(Input input)
{
    const auto mode = input.byte() % 3;
    std::vector<std::string_view> words;
    auto rest = input.rest();
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        words.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::vector<Reply> page;
    for (const auto word : words) {
        page.push_back(textReply(std::string(word)));
    }
    const LockFields fields{mode == 0 ? Reply() : textReply(mode == 1 ? "read" : "write"),
                            arrayReply({textReply("0"), arrayReply(std::move(page))}), numberReply(1000)};
    const auto report = reportOf("n", fields);
    if (!report) {
        return;
    }
    auto holder = report->holders.begin();
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        if (words[i] != "mode") {
            require(holder != report->holders.end() && isOf(*holder, words[i]), "a field of a lock is a holder");
            require(holder->count > 0, "a holder holds");
            ++holder;
        }
    }
    require(holder == report->holders.end() && !report->holders.empty(), "a lock has the holders of its fields");
    const bool isPlain = report->kind == ObjectKind::redisLock;
    require(!isPlain || (report->holders.size() == 1 && !report->holders[0].writes), "a plain lock has one holder");
}

} // namespace
} // namespace redislock::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace redislock::test;
    Input input(data, size);
    input.byte() % 2 == 0 ? checkWritten(input) : checkHash(input);
    return 0;
}
