/// @file
/// The command line and the exit status of the demonstrations.
#pragma once

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace example {

constexpr int exitFailed = 2; ///< the demonstration could not show what it is there for

/// Parses the command line and runs a demonstration.
///
/// @param name its name in messages. @param show returns the exit status.
/// @return that, or exitFailed for a command line that was not understood, and for an exception, whose message is then
/// one line on standard error.
template <class Show>
int demonstrate(CLI::App& app, const char* name, int argc, char** argv, Show show)
{
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exitFailed;
    }
    try {
        return show();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return exitFailed;
    }
}

} // namespace example
