// A program with a hiredis of its own: once with the readers of 1.0, once with older ones. One of them is not like that
// with which the library was built.
#include <redislock/redislock.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t functionsSince1 = 200; // where a reader keeps its functions, on machines with 64 bits
constexpr std::size_t functionsBefore1 = 544;
std::size_t functions = 0;

/// What the first client and the first monitor say; empty: nothing.
template <class Made>
std::string complaintOf()
{
    try {
        const Made made{std::string_view("redis://127.0.0.1:1")};
        return {};
    } catch (const redislock::LockError& error) {
        return error.code() == redislock::Errc::unsupported ? error.what() : "another error";
    }
}

} // namespace

extern "C" {
void* redisReaderCreateWithFunctions(void* used)
{
    void* const reader = std::calloc(1, functions + 2 * sizeof used);
    std::memcpy(static_cast<char*>(reader) + functions, &used, sizeof used);
    return reader;
}
void redisReaderFree(void* reader)
{
    std::free(reader);
}
int redisReaderFeed(void* /*reader*/, const char* /*bytes*/, std::size_t /*length*/)
{
    return -1;
}
int redisReaderGetReply(void* /*reader*/, void** /*reply*/)
{
    return -1;
}
}

int main()
{
    int accepted = 0;
    for (const auto each : {functionsSince1, functionsBefore1}) {
        functions = each;
        const auto complaint = complaintOf<redislock::Client>();
        std::cout << (complaint.empty() ? "accepted" : complaint) << '\n';
        if (complaint != complaintOf<redislock::LockMonitor>()) {
            return 1;
        }
        if (complaint.empty()) {
            ++accepted;
        } else if (complaint.find("redislock was built with hiredis ") == std::string::npos ||
                   complaint.find(each == functionsSince1 ? "a version from 1.0 on" : "a version before 1.0") ==
                       std::string::npos ||
                   complaint.find("consumer") == std::string::npos) { // the file in which it was found
            return 1;
        }
    }
    return accepted == 1 ? 0 : 1;
}
