/// @file
/// What a program pays for the library: the compile time of a source file that includes it, and the size.
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

/// Appends the words of a text.
void appendWords(std::vector<std::string>& out, std::string_view text, char separator, const std::string& prefix)
{
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find(separator, begin), text.size());
        out.push_back(prefix + std::string(text.substr(begin, end - begin)));
        begin = end + 1;
    }
}

void runCompiler(const std::vector<std::string>& command, const std::filesystem::path& log)
{
    testing::detail::ChildProcess compiler(command, log);
    constexpr std::chrono::minutes limit{5};
    if (!compiler.awaitEnd(limit) || compiler.ending() != "exit status 0") {
        throw std::runtime_error(fmt::format("the compiler failed:\n{}", testing::detail::readFile(log)));
    }
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
        appendWords(command_, REDISLOCK_BENCH_INCLUDES, ':', "-I");
    }

    /// The median of the processor time in ms; other programs disturb it less than the time by the clock.
    double medianTime(Seconds duration)
    {
        std::vector<double> samples;
        const auto end = Clock::now() + duration;
        do {
            const auto before = childrensTime();
            runCompiler(command_, folder_.path() / "log");
            samples.push_back(childrensTime() - before);
        } while (Clock::now() < end);
        return median(std::move(samples));
    }

private:
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

Measure programSize(const Target& /*target*/)
{
    const auto kibOfHello = [](Seconds /*duration*/) {
        const testing::detail::TemporaryFolder folder;
        const auto program = folder.path() / "hello";
        std::vector<std::string> command{REDISLOCK_BENCH_COMPILER, "-std=c++20", "-O2", "-s", REDISLOCK_BENCH_HELLO};
        appendWords(command, REDISLOCK_BENCH_INCLUDES, ':', "-I");
        appendWords(command, REDISLOCK_BENCH_LIBRARIES, ' ', "");
        command.insert(command.end(), {"-pthread", "-o", program.string()});
        runCompiler(command, folder.path() / "log");
        return static_cast<double>(std::filesystem::file_size(program)) / 1024;
    };
    return inTurn(kibOfHello, [](Seconds /*duration*/) { return 700.0; });
}

} // namespace redislock::bench
