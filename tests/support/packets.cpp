#include "support/packets.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace redislock::test {
namespace {

constexpr const char* table = "inet redislock_test";

/// Runs a command; throws if its exit status is not 0.
std::string run(const std::string& command)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen((command + " 2>&1").c_str(), "re"), ::pclose);
    if (!pipe) {
        throw std::runtime_error("no shell");
    }
    std::string output;
    std::array<char, 4096> bytes{};
    for (auto size = bytes.size(); size > 0;) {
        size = std::fread(bytes.data(), 1, bytes.size(), pipe.get());
        output.append(bytes.data(), size);
    }
    const std::string end = "ok\n"; // the last line of the output of all commands below
    if (!output.ends_with(end)) {
        throw std::runtime_error("nft: " + output);
    }
    return output.substr(0, output.size() - end.size());
}

std::string nft(const std::string& script)
{
    return run("PATH=$PATH:/usr/sbin:/sbin nft -f - <<'END' && echo ok\n" + script + "\nEND\n");
}

std::string failed(const std::string& what)
{
    return what + ": " + std::strerror(errno);
}

void write(const char* file, const std::string& text)
{
    std::ofstream(file) << text;
}

/// As root, or as the root of a user namespace.
bool leaveTheNetwork()
{
    if (::unshare(CLONE_NEWNET) == 0) {
        return true;
    }
    const auto user = std::to_string(::getuid());
    const auto group = std::to_string(::getgid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    write("/proc/self/setgroups", "deny");
    write("/proc/self/uid_map", "0 " + user + " 1");
    write("/proc/self/gid_map", "0 " + group + " 1");
    return true;
}

bool startLoopback()
{
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo"); // NOLINT: fits
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool done = socket >= 0 && ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
    ::close(socket);
    return done;
}

/// Why no rules can be made here, for instance because the kernel lacks a part; empty: they can be made.
std::string whyNoRules()
{
    try {
        const PacketFilter filter({"tcp dport 1 numgen random mod 100 < 30 counter drop"});
        return filter.hits() == 0 ? "" : "nft counts what was not sent";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

} // namespace

std::string enterNetworkOfItsOwn()
{
    if (!leaveTheNetwork()) {
        return failed("unshare");
    }
    if (!startLoopback()) {
        throw std::runtime_error(failed("the loopback device of a new network"));
    }
    return whyNoRules();
}

std::vector<std::uint16_t> clientPortsOf(std::uint16_t port)
{
    constexpr const char* established = "01";
    std::vector<std::uint16_t> ports;
    std::ifstream file("/proc/self/net/tcp");
    std::string line;
    std::getline(file, line); // the names of the columns
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string number;
        std::string local;
        std::string remote;
        std::string state;
        words >> number >> local >> remote >> state;
        const auto portIn = [](const std::string& address) {
            return static_cast<std::uint16_t>(std::stoul(address.substr(address.find(':') + 1), nullptr, 16));
        };
        if (state == established && portIn(remote) == port) {
            ports.push_back(portIn(local));
        }
    }
    return ports;
}

PacketFilter::PacketFilter(const std::vector<std::string>& rules)
{
    std::string script = std::string("table ") + table + " {\nchain output {\ntype filter hook output priority 0;\n";
    for (const auto& rule : rules) {
        script += rule + "\n";
    }
    nft(script + "}\n}");
}

PacketFilter::~PacketFilter()
{
    try {
        nft(std::string("delete table ") + table);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::abort(); // otherwise the rest of the run would be broken for no visible reason
    }
}

std::size_t PacketFilter::hits() const
{
    std::istringstream words(nft(std::string("list table ") + table));
    std::size_t sum = 0;
    for (std::string word; words >> word;) {
        std::size_t count = 0;
        if (word == "packets" && words >> count) {
            sum += count;
        }
    }
    return sum;
}

} // namespace redislock::test
