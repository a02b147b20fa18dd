#include "structure/layers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <sstream>

namespace redislock::test {

namespace {

enum class Layer { base, logic, protocol, core, transport, runtime, prometheus, api, testing, none };

constexpr std::array layerNames{"base",    "logic",      "protocol", "core",    "transport",
                                "runtime", "prometheus", "api",      "testing", "no layer"};

constexpr std::string_view logicFolder = "include/redislock/detail/logic/";
constexpr std::string_view publicFolder = "include/redislock/";
constexpr std::string_view protocolFolder = "include/redislock/detail/protocol/";

// Public headers below everything else.
constexpr std::array baseHeaders{"error",        "unlocked", "identity",     "lease_time", "clock",
                                 "random",       "observer", "retry_policy", "endpoint",   "config",
                                 "requirements", "export",   "lock_report"};

// Transport and logic are siblings. Connections are made of these parts of the logic, and of no others.
constexpr std::array logicForTransport{"event.hpp", "reply_queue.hpp", "reconnect_policy.hpp",
                                       "subscription_table.hpp"};

constexpr std::array asioForApi{"boost/asio/any_io_executor.hpp",
                                "boost/asio/any_completion_handler.hpp",
                                "boost/asio/associated_cancellation_slot.hpp",
                                "boost/asio/associated_executor.hpp",
                                "boost/asio/associator.hpp",
                                "boost/asio/async_result.hpp",
                                "boost/asio/awaitable.hpp",
                                "boost/asio/bind_cancellation_slot.hpp",
                                "boost/asio/cancellation_signal.hpp",
                                "boost/asio/co_spawn.hpp",
                                "boost/asio/deferred.hpp",
                                "boost/asio/execution/blocking.hpp",
                                "boost/asio/execution/context.hpp",
                                "boost/asio/execution_context.hpp",
                                "boost/asio/prefer.hpp",
                                "boost/asio/query.hpp",
                                "boost/asio/recycling_allocator.hpp",
                                "boost/asio/use_awaitable.hpp"};

constexpr std::array threading{"atomic", "barrier",   "condition_variable", "future",     "latch", "mutex",
                               "random", "semaphore", "shared_mutex",       "stop_token", "thread"};

// The public headers above the base that the core needs: references to its own holds, and their state.
constexpr std::array apiForCore{"hold_ref.hpp", "stop_at.hpp"};

// The core has no threads: its caller has taken the mutex. But the ends of holds and permits are read without the
// mutex, a thread sleeps on its call, and a loss is signalled by a std::stop_source.
struct Exception {
    std::string_view file;
    std::string_view target;
};
constexpr std::array threadingInCore{
    Exception{"src/link/request/call.hpp", "atomic"}, Exception{"src/link/request/signal.hpp", "atomic"},
    Exception{"src/core/hold.hpp", "atomic"},         Exception{"src/core/hold.hpp", "stop_token"},
    Exception{"src/core/core.hpp", "stop_token"},     Exception{"src/core/counter/permit_hold.hpp", "atomic"}};

template <class Range>
bool contains(const Range& range, std::string_view value)
{
    return std::any_of(range.begin(), range.end(), [&](std::string_view each) { return each == value; });
}

bool isIn(Layer layer, std::initializer_list<Layer> layers)
{
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

Layer layerOf(std::string_view path)
{
    const auto below = [&](std::string_view folder) { return path.starts_with(folder); };
    if (below(logicFolder)) {
        return Layer::logic;
    }
    if (below(protocolFolder) || below("src/protocol/")) {
        return Layer::protocol;
    }
    if (below("src/logic/")) {
        return Layer::core;
    }
    if (below("src/transport/")) {
        return Layer::transport;
    }
    if (below("src/runtime/")) {
        return Layer::runtime;
    }
    if (below("src/prometheus/")) {
        return Layer::prometheus;
    }
    if (below("include/redislock/testing/")) {
        return Layer::testing;
    }
    if (!below(publicFolder) || path.find('/', publicFolder.size()) != std::string_view::npos) {
        return Layer::none;
    }
    const std::string_view name = path.substr(publicFolder.size());
    return contains(baseHeaders, name.substr(0, name.find('.'))) ? Layer::base : Layer::api;
}

std::string nameOf(Layer layer)
{
    return layerNames.at(static_cast<std::size_t>(layer));
}

// The included file as a path in the project; empty for foreign headers.
std::string inProject(std::string_view file, std::string_view target)
{
    if (target.starts_with("redislock/")) {
        return "include/" + std::string(target);
    }
    for (const std::string_view folder : {"protocol/", "logic/", "transport/", "runtime/"}) {
        if (target.starts_with(folder)) {
            return "src/" + std::string(target);
        }
    }
    if (target.ends_with(".hpp") && target.find('/') == std::string_view::npos) { // a neighbour
        return std::string(file.substr(0, file.rfind('/') + 1)) + std::string(target);
    }
    return {};
}

std::string ownViolation(Layer from, std::string_view path)
{
    const Layer to = layerOf(path);
    const std::string refusal = nameOf(from) + " may not include " + nameOf(to);
    if (path == "include/redislock/prometheus_observer.hpp" && from != Layer::prometheus) {
        return "it is of a library that may not be there";
    }
    switch (from) {
    case Layer::base:
        return to == Layer::base ? "" : refusal;
    case Layer::logic:
        if (path.starts_with("src/")) {
            return "logic may not include what is compiled";
        }
        return isIn(to, {Layer::base, Layer::logic, Layer::protocol}) ? "" : refusal;
    case Layer::protocol:
        return isIn(to, {Layer::base, Layer::protocol}) ? "" : refusal;
    case Layer::core:
        if (path.starts_with("src/protocol/")) {
            return "the core may not include the codec";
        }
        if (to == Layer::api) {
            return contains(apiForCore, path.substr(publicFolder.size())) ? "" : refusal;
        }
        return isIn(to, {Layer::base, Layer::logic, Layer::protocol, Layer::core}) ? "" : refusal;
    case Layer::transport:
        if (to == Layer::core) {
            return path.starts_with("src/logic/call/") ? "" : refusal;
        }
        if (to == Layer::logic) {
            return contains(logicForTransport, path.substr(logicFolder.size())) ? "" : refusal;
        }
        return isIn(to, {Layer::base, Layer::protocol, Layer::transport}) ? "" : refusal;
    case Layer::runtime:
        return isIn(to, {Layer::prometheus, Layer::testing, Layer::none}) ? refusal : "";
    case Layer::prometheus: // as a program with an observer of its own
        if (path == "src/wire/printable.hpp") {
            return "";
        }
        return isIn(to, {Layer::base, Layer::prometheus, Layer::api}) ? "" : refusal;
    case Layer::api:
        if (path.starts_with("include/redislock/detail/") && path.ends_with("fwd.hpp")) {
            return "";
        }
        return isIn(to, {Layer::base, Layer::api}) ? "" : refusal;
    case Layer::testing:
        return to == Layer::testing ? "" : refusal;
    case Layer::none:
        break;
    }
    return "the file belongs to no layer";
}

std::string foreignViolation(Layer from, std::string_view file, std::string_view target)
{
    const std::string refusal = nameOf(from) + " may not include <" + std::string(target) + ">";
    if (target.starts_with("hiredis/")) {
        return file == "src/wire/codec.cpp" ? "" : "only src/wire/codec.cpp may include hiredis";
    }
    if (target.starts_with("fmt/")) {
        const bool compiled = isIn(from, {Layer::protocol, Layer::transport, Layer::runtime}) && file.ends_with(".cpp");
        return compiled || file == "include/redislock/format.hpp" ? "" : "only compiled sources may include fmt";
    }
    if (target.starts_with("prometheus/")) {
        return from == Layer::prometheus ? "" : "only src/prometheus may include prometheus-cpp";
    }
    if (target.starts_with("boost/")) {
        const bool sockets = isIn(from, {Layer::transport, Layer::runtime});
        const bool erased =
            from == Layer::api && (contains(asioForApi, target) || target.starts_with("boost/system/") ||
                                   target == "boost/smart_ptr/intrusive_ptr.hpp");
        const bool version = file == "include/redislock/version.hpp.in" && target == "boost/version.hpp";
        const bool container = from == Layer::core && target.starts_with("boost/unordered/");
        return sockets || erased || version || container ? "" : refusal;
    }
    if (target.ends_with(".h")) { // the operating system's
        const bool compiled = file.starts_with("src/") && from != Layer::core;
        return isIn(from, {Layer::transport, Layer::runtime, Layer::testing}) || compiled ? "" : refusal;
    }
    const bool excepted = std::any_of(threadingInCore.begin(), threadingInCore.end(), [&](const Exception& each) {
        return each.file == file && each.target == target;
    });
    if (isIn(from, {Layer::logic, Layer::core}) && contains(threading, target) && !excepted) {
        return refusal;
    }
    return target.find('/') == std::string_view::npos ? "" : refusal;
}

} // namespace

std::vector<Include> includesOf(std::string_view text)
{
    std::vector<Include> includes;
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream words(line);
        char hash = 0;
        std::string directive;
        std::string target;
        if (words >> hash && hash == '#' && words >> directive && directive.starts_with("include")) {
            const auto open = line.find_first_of("<\"");
            const auto close = line.find_last_of(">\"");
            if (open != std::string::npos && close > open) {
                includes.push_back({line.substr(open + 1, close - open - 1), number});
            }
        }
    }
    return includes;
}

std::string violation(std::string_view file, std::string_view target)
{
    const Layer from = layerOf(file);
    if (from == Layer::none) {
        return "the file belongs to no layer";
    }
    const std::string own = inProject(file, target);
    return own.empty() ? foreignViolation(from, file, target) : ownViolation(from, own);
}

std::string scriptIdentifier(std::string_view name)
{
    std::string identifier;
    bool raise = false;
    for (const char each : name) {
        if (each == '_' || each == '/') {
            raise = true;
            continue;
        }
        identifier += raise ? static_cast<char>(std::toupper(static_cast<unsigned char>(each))) : each;
        raise = false;
    }
    return identifier;
}

std::string firstProgram(std::string_view markdown)
{
    constexpr std::string_view fence = "```cpp\n";
    for (auto at = markdown.find(fence); at != std::string_view::npos; at = markdown.find(fence, at)) {
        at += fence.size();
        const std::string_view block = markdown.substr(at, markdown.find("```", at) - at);
        if (block.find("int main(") != std::string_view::npos) {
            return std::string(block);
        }
    }
    return {};
}

} // namespace redislock::test
