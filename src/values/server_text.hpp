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
    if (!config.sentinels && config.cluster.empty()) {
        return config.endpoint.str();
    }
    std::string text =
        config.sentinels ? "the master \"" + printable(config.sentinels->name) + "\" of" : "the cluster of";
    const auto& endpoints = config.sentinels ? config.sentinels->endpoints : config.cluster;
    for (const auto& endpoint : endpoints) {
        text.append(&endpoint == &endpoints.front() ? " " : ", ").append(endpoint.str());
    }
    return text;
}

} // namespace redislock::detail
