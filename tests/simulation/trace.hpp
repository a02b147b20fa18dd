/// @file
/// The events of a run, in readable form.
#pragma once

#include "simulation/scheduler.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace redislock::simulation {

/// One line for each event: virtual time in ms, actor, action. Costs nothing when it is off.
class Trace {
public:
    explicit Trace(const Scheduler& scheduler, bool on) noexcept : scheduler_(scheduler), on_(on) {}

    template <class... Arguments>
    void operator()(std::string_view who, fmt::format_string<Arguments...> what, Arguments&&... arguments)
    {
        if (on_) {
            fmt::format_to(std::back_inserter(text_), "{:>14.6f} {:<8} ",
                           static_cast<double>(scheduler_.now().count()) / 1e6, who);
            fmt::format_to(std::back_inserter(text_), what, std::forward<Arguments>(arguments)...);
            text_.push_back('\n');
        }
    }

    [[nodiscard]] bool isOn() const noexcept { return on_; }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
    const Scheduler& scheduler_;
    bool on_;
    std::string text_;
};

} // namespace redislock::simulation
