// A command that is hard to end: hard_to_end HOW FILE. It adds its process id to the file and ignores TERM.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string_view>
#include <thread>

int main(int count, char** arguments)
{
    const std::string_view how(count == 3 ? arguments[1] : "");
    ::signal(SIGTERM, SIG_IGN);
    if (how == "as_owner" &&
        ::setresuid(::geteuid(), ::geteuid(), ::geteuid()) != 0) { // with the file's set-user-ID bit
        return 1;
    }
    std::ofstream(arguments[2], std::ios::app) << ::getpid() << std::endl;
    const auto work = [] {
        for (;;) {
            ::pause();
        }
    };
    if (how == "without_main_thread") {
        std::thread(work).detach();
        ::pthread_exit(nullptr);
    }
    work();
}
