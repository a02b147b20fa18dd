// A partner allows three downloads at a time, for all our processes together. The permits belong to no process: if a
// process crashes, its permit is lost, which PermitExpirableSemaphore avoids.
#include "shared/command_line.hpp"

#include <redislock/redislock.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Stands for the partner, and counts the downloads.
class Partner {
public:
    void download()
    {
        const int now = ++running_;
        for (int most = most_; now > most && !most_.compare_exchange_weak(most, now);) {
        }
        std::this_thread::sleep_for(20ms);
        --running_;
    }
    [[nodiscard]] int mostAtATime() const noexcept { return most_; }

private:
    std::atomic<int> running_{0};
    std::atomic<int> most_{0};
};

bool downloadAll(const std::string& url)
{
    const redislock::Client client(url);
    client.connect(); // reports a wrong address here, not after the first wait
    const redislock::Semaphore downloads = client.getSemaphore("example:downloads");
    downloads.trySetPermits(3, 1min); // a later call changes nothing; without the time the key would stay for ever

    Partner partner;
    std::vector<std::future<bool>> files;
    for (int file = 1; file <= 8; ++file) {
        files.push_back(std::async(std::launch::async, [&] {
            if (!downloads.tryAcquire(1, 10s)) {
                return false; // other programs were downloading all the time
            }
            partner.download();
            downloads.release();
            return true;
        }));
    }
    int complete = 0;
    for (auto& file : files) {
        complete += file.get() ? 1 : 0;
    }
    downloads.forceDelete();
    std::cout << complete << " files were downloaded, at most " << partner.mostAtATime() << " at a time\n";
    return complete == 8 && partner.mostAtATime() <= 3;
}

} // namespace

int main(int argc, char** argv)
{
    return example::run(argc, argv, "Downloads eight files from a partner that allows three downloads at a time.",
                        downloadAll);
}
