/// @file
/// The compile time that a source file pays for including the library.
#include "rows.hpp"
#include "statistics.hpp"

#include <redislock/testing/child_process.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace redislock::bench {

namespace {

/// The processor time of all ended child processes, in ms.
double childrensTime()
{
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    const auto ms = [](const timeval& time) {
        return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
    };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
}

/// Compiles a source file of one line, with the compiler and the folders that this program was built with.
class Compilation {
public:
    explicit Compilation(std::string_view header)
    {
        const auto source = folder_.path() / "source.cpp";
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(source.c_str(), "w"), &std::fclose);
        expect(file != nullptr, "the temporary folder");
        fmt::print(file.get(), "#include <{}>\n", header);
        command_ = {REDISLOCK_BENCH_COMPILER,
                    "-std=c++20",
                    "-O0",
                    "-c",
                    source.string(),
                    "-o",
                    (folder_.path() / "object.o").string()};
        constexpr std::string_view folders = REDISLOCK_BENCH_INCLUDES;
        for (std::size_t begin = 0; begin < folders.size();) {
            const auto end = std::min(folders.find(':', begin), folders.size());
            command_.push_back("-I" + std::string(folders.substr(begin, end - begin)));
            begin = end + 1;
        }
    }

    /// The median of the processor time in ms; other programs disturb it less than the time by the clock.
    double medianTime(Seconds duration)
    {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            const auto before = childrensTime();
            compileOnce();
            samples.push_back(childrensTime() - before);
        } while (Clock::now() < end);
        return median(std::move(samples));
    }

private:
    void compileOnce()
    {
        const auto log = folder_.path() / "log";
        testing::detail::ChildProcess compiler(command_, log);
        constexpr std::chrono::minutes limit{5};
        if (!compiler.awaitEnd(limit) || compiler.ending() != "exit status 0") {
            throw std::runtime_error(fmt::format("the compiler failed:\n{}", testing::detail::readFile(log)));
        }
    }

    testing::detail::TemporaryFolder folder_;
    std::vector<std::string> command_;
};

Side compilationOf(std::string_view header)
{
    return [compilation = std::make_shared<Compilation>(header)](Seconds d) { return compilation->medianTime(d); };
}

} // namespace

Measure compileTime(const Target& /*target*/)
{
    return inTurn(compilationOf("redislock/redislock.hpp"), compilationOf("boost/asio/any_completion_handler.hpp"));
}

} // namespace redislock::bench
