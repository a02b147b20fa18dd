/// @file
/// Writes a history.
#pragma once

#include "history/record.hpp"

#include <filesystem>

namespace redislock::test::history {

/// Appends records to a file of this process, with one `write` for each line, so that a process that is killed leaves
/// whole lines. Thread-safe.
class Recorder {
public:
    /// @throws std::system_error when the file cannot be opened.
    explicit Recorder(const std::filesystem::path& file);
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;
    ~Recorder();

    /// Writes a record; sets its process, and its time if it has none. Ends the program when the line cannot be
    /// written: a history with holes proves nothing.
    void write(Record record) noexcept;

private:
    int file_;
    int pid_;
};

} // namespace redislock::test::history
