#include "history/recorder.hpp"

#include "support/eventually.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace redislock::test::history {

Recorder::Recorder(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)), pid_(::getpid())
{
    if (file_ < 0) {
        throw std::system_error(errno, std::generic_category(), file.string());
    }
}

Recorder::~Recorder()
{
    ::close(file_);
}

void Recorder::write(Record record) noexcept
{
    if (record.t == 0) {
        record.t = bootTime().count();
    }
    if (record.pid == 0) {
        record.pid = pid_;
    }
    const auto line = toLine(record);
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        std::perror("the history cannot be written");
        std::abort();
    }
}

} // namespace redislock::test::history
