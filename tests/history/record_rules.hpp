/// @file
/// What the lines of a history must have, so that a history that somebody else wrote is understood or refused. The
/// README of this folder says the same in words.
#pragma once

#include "history/record.hpp"

#include <map>
#include <string>
#include <utility>

namespace redislock::test::history {

/// What is wrong with the line, taken for itself: a field that is missing or out of range, a word that is not known.
/// Empty: nothing.
std::string complaintAbout(const Record& record);

/// The order of the lines of one file: what one thread did, and what the server did, is written down as it happened.
/// Other lines may stand in any order.
class OrderOfLines {
public:
    /// What is wrong with the place of the next line. Empty: nothing.
    std::string complaintAbout(const Record& record);

private:
    std::map<std::pair<int, int>, Nanoseconds> threads_;
    Nanoseconds streamed_ = 0;
    std::int64_t offset_ = 0;
};

} // namespace redislock::test::history
