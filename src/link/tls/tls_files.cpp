#include "link/tls/tls_files.hpp"

#include "redislock/error.hpp"

#include <sys/stat.h>

#include <utility>

namespace redislock::detail {

TlsFiles::TlsFiles(const Tls& tls, std::function<void(std::string)> warn)
    : tls_(tls), warn_(std::move(warn)), read_(states())
{
    auto loaded = TlsContext::load(tls_);
    if (loaded.context == nullptr) {
        throw LockError(Errc::badConfig, loaded.trouble);
    }
    context_ = std::move(loaded.context);
}

void TlsFiles::look(TimePoint now)
{
    if (auto seen = states(); seen != read_) {
        auto loaded = TlsContext::load(tls_);
        read_ = std::move(seen);
        trouble_ = std::move(loaded.trouble);
        if (loaded.context != nullptr) {
            context_ = std::move(loaded.context);
        }
        tellAt_ = trouble_.empty() ? TimePoint::max() : loaded.isPair ? now + patience : now;
    }
    if (now >= tellAt_) {
        tellAt_ = TimePoint::max();
        warn_(trouble_ + "; the files that were read before stay in use");
    }
}

/// Of the files that links lead to.
std::vector<TlsFiles::FileState> TlsFiles::states() const
{
    std::vector<FileState> all;
    for (const auto* path : {&tls_.caFile, &tls_.caPath, &tls_.certFile, &tls_.keyFile}) {
        struct stat facts = {};
        FileState state;
        if (!path->empty() && ::stat(path->c_str(), &facts) == 0) {
            constexpr std::int64_t nanoseconds = 1'000'000'000;
            state = {facts.st_dev, facts.st_ino, facts.st_size,
                     facts.st_ctim.tv_sec * nanoseconds + facts.st_ctim.tv_nsec};
        }
        all.push_back(state);
    }
    return all;
}

} // namespace redislock::detail
