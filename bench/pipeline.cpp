#include "pipeline.hpp"

#include "reference/raw_locks.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace redislock::bench {

Side pipelineSide(const Target& target, unsigned underWay)
{
    std::vector<std::string> names;
    for (unsigned i = 0; i < underWay; ++i) {
        names.push_back(fmt::format("bench:pipe:{:02}", i));
    }
    auto pipeline = std::make_shared<RawPipeline>(target.host, target.port, std::move(names));
    return [underWay, pipeline](Seconds duration) {
        return underWay * callsPerSecond(1, duration, [&](unsigned) { pipeline->lockAndUnlockAll(); });
    };
}

} // namespace redislock::bench
