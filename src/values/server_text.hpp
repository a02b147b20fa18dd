/// @file
/// How a message names the server of a client.
#pragma once

#include "redislock/config.hpp"
#include "values/printable.hpp"

#include <string>

namespace redislock::detail {

/// Where the client of these settings finds its server.
inline std::string serverText(const Config& config)
{
    if (!config.sentinels) {
        return config.endpoint.str();
    }
    std::string text = "the master \"" + printable(config.sentinels->name) + "\" of";
    for (const auto& endpoint : config.sentinels->endpoints) {
        text.append(&endpoint == &config.sentinels->endpoints.front() ? " " : ", ").append(endpoint.str());
    }
    return text;
}

} // namespace redislock::detail
