/// @file
/// Who worked under the lock when, as an SVG.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace failover {

using Time = std::chrono::duration<double>; ///< since the scene began

struct Span {
    Time from{};
    Time to{};

    [[nodiscard]] double seconds() const { return std::max(0.0, (to - from).count()); }
};

/// What happened in a scene.
struct Shown {
    std::string_view title;
    std::string_view lesson;
    Span holder{}; ///< the work of the client that had the lock when the master was killed
    Span next{};   ///< the work of the client that waited for it
    Time killedAt{};
    Time newMasterAt{};
    Time toldAt{}; ///< the holder's stop token was stopped; zero: never

    /// When both worked.
    [[nodiscard]] Span both() const { return {std::max(holder.from, next.from), std::min(holder.to, next.to)}; }
    /// How long after the new master came the holder was notified.
    [[nodiscard]] double untilTold() const { return Span{newMasterAt, toldAt}.seconds(); }
};

/// All scenes, one below the other.
inline std::string pictureOf(const std::vector<Shown>& scenes)
{
    constexpr Span whole{Time(0), Time(5.5)};
    const auto x = [](Time at) { return 110 + 140 * at.count(); };
    const auto bar = [&](std::string_view kind, const Span& span, int y, int height = 22) {
        return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n", kind,
                           x(span.from), y, 2 + x(span.to) - x(span.from), height);
    };
    const auto words = [](std::string_view kind, double at, int y, std::string_view what) {
        return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", kind, at + 4, y, what);
    };
    auto text = fmt::format(R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 890 {}" role="img"
aria-label="Time lines of the master, the holder and the waiter in each scene of a fail-over"><style>
text {{ font: 13px system-ui, sans-serif; fill: #1c2330 }} .title {{ font-size: 16px; font-weight: 600 }}
.paper, .light {{ fill: #fff }} .faint {{ fill: #596170 }} .lane {{ fill: #f3f5f8 }} .old {{ fill: #9aa1ad }}
.new {{ fill: #177245 }} .holds {{ fill: #2f6fde }} .bad {{ fill: #c9241a }} .mark {{ fill: #1c2330 }}
</style><rect class="paper" width="100%" height="100%"/>
)svg",
                            190 * scenes.size());
    int top = 10;
    for (const auto& scene : scenes) {
        text += words("title", 6, top + 14, scene.title) + words("faint", 6, top + 34, scene.lesson);
        for (const auto* who : {"the master", "the holder", "the waiter"}) {
            text += bar("lane", whole, top + 46) + words("faint", 6, top + 62, who);
            top += 28;
        }
        text += bar("old", {whole.from, scene.killedAt}, top - 38) +
                words("bad", x(scene.killedAt), top - 22, "&#10005; killed") +
                bar("new", {scene.newMasterAt, whole.to}, top - 38) +
                words("light", x(scene.newMasterAt), top - 22, "the new master") +
                bar("holds", scene.holder, top - 10) + bar("holds", scene.next, top + 18);
        if (scene.toldAt != Time::zero()) {
            const bool worksOn = scene.holder.to > scene.toldAt + Time(0.3);
            text += bar("mark", {scene.toldAt, scene.toldAt}, top - 12, 26) +
                    words(worksOn ? "light" : "", x(worksOn ? scene.toldAt : scene.holder.to), top + 6,
                          fmt::format("notified after {:.0f} ms", 1000 * scene.untilTold()));
        }
        if (scene.both().seconds() > 0) {
            text += bar("bad", scene.both(), top + 44, 8) +
                    words("bad", x(scene.both().to), top + 53,
                          fmt::format("two work at once for {:.2f} s", scene.both().seconds()));
        }
        for (int second = 0; second < 6; ++second) {
            text += words("faint", x(Time(second)), top + 72, fmt::format("{} s", second));
        }
        top += 106;
    }
    return text + "</svg>\n";
}

} // namespace failover
