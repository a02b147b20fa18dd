/// @file
/// The command line: what it may be, and what was meant by one that it may not be.
#pragma once

#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace redislock::tool {

/// Adds all commands with their options. @param isNameBehind that a name may follow `--`
void addCommands(CLI::App& app, Settings& settings, bool isNameBehind);

/// What was probably meant by arguments that cannot be understood; empty: nobody knows.
std::string whatWasMeant(CLI::App& app, const std::vector<std::string>& arguments);

} // namespace redislock::tool
