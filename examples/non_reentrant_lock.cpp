// A rebuild that must not start again before it ends. A RedisLock would let its holder in a second time; a
// NonReentrantLock refuses.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

/// A search index that many processes use; only one of them rebuilds it at a time.
class Index {
public:
    explicit Index(redislock::NonReentrantLock lock) : lock_(std::move(lock)) {}

    /// @param added is called for each word. @throws redislock::LockError `wouldDeadlock` if it rebuilds the same
    /// index.
    void rebuild(const std::function<void()>& added)
    {
        const redislock::LockGuard held(lock_); // waits for other threads and processes, but not for this thread
        words_.clear();
        for (const char* word : {"lock", "lease", "token"}) {
            words_.emplace_back(word);
            added();
        }
    }
    [[nodiscard]] std::size_t words() const noexcept { return words_.size(); }

private:
    redislock::NonReentrantLock lock_;
    std::vector<std::string> words_;
};

bool rebuildOnce(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    Index index(client.getNonReentrantLock("example:index"));
    int refused = 0;
    index.rebuild([&] {
        try {
            index.rebuild([] {}); // a mistake: it would empty the index in the middle of the outer rebuild
        } catch (const redislock::LockError& error) {
            if (error.code() != redislock::Errc::wouldDeadlock) {
                throw;
            }
            ++refused; // refused at once, and nothing was sent
        }
    });
    std::cout << "the index has " << index.words() << " words; " << refused << " nested rebuilds were refused\n";
    return index.words() == 3 && refused == 3;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv,
                        "Rebuilds an index under a lock, and by mistake tries to rebuild it again before the end.",
                        rebuildOnce);
}
