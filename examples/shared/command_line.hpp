/// @file
/// The command line and the exit status of the examples. A program that uses the library does not need this file.
#pragma once

#include <string>
#include <vector>

namespace example {

/// Runs an example whose command line is `<program> [--help] [URL]`: prints what it is about to do, then does it.
///
/// @param about a sentence about what the example does, also the text of `--help`.
/// @param work gets the URL of the server. Returns whether everything went well.
/// @return the exit status: 0 if everything went well, or after `--help`; 1 if not, or after an exception, whose
/// message is then one line on standard error; 2 for a command line that was not understood.
int run(int argc, char** argv, const std::string& about, bool (*work)(const std::string& url));

/// The same for `<program> [--help] [URL…]`.
int runWithServers(int argc, char** argv, const std::string& about, bool (*work)(const std::vector<std::string>& urls));

} // namespace example
