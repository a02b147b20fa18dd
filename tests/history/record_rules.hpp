/// @file
/// Rules for the lines of a history, by which a foreign history is understood or refused. The README of this folder
/// says the same in words.
#pragma once

#include "history/record.hpp"

#include <map>
#include <string>
#include <utility>

namespace redislock::test::history {

/// The error in a single line: a field that is missing or out of range, a word that is not known. Empty: none.
std::string complaintAbout(const Record& record);

/// The order of the lines of one file: the lines of one thread, and the lines of the server, are in the order of the
/// events. Other lines may be in any order.
class OrderOfLines {
public:
    /// The error in the place of the next line. Empty: none.
    std::string complaintAbout(const Record& record);

private:
    std::map<std::pair<int, int>, Nanoseconds> threads_;
    Nanoseconds streamed_ = 0;
    std::int64_t offset_ = 0;
};

} // namespace redislock::test::history
