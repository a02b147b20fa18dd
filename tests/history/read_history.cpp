// Histories from files.
#include "history/record.hpp"
#include "history/record_rules.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace redislock::test::history {
namespace {

/// The lines of one file.
class FileReader {
public:
    explicit FileReader(std::string source) : source_(std::move(source)) {}

    void take(std::string_view line)
    {
        ++number_;
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (line.empty() || line.starts_with("//")) {
            return;
        }
        try {
            add(fromLine(line));
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(where() + ": " + error.what());
        }
    }

    /// Takes the text after the last line end: a whole record, or one that was cut off.
    void takeLast(std::string_view rest)
    {
        if (rest.empty()) {
            return;
        }
        if (isWhole(rest)) {
            return take(rest);
        }
        ++number_;
        Record cut;
        cut.t = records_.empty() ? 0 : records_.back().t;
        cut.pid = records_.empty() ? 0 : records_.back().pid;
        setPlace(cut);
        records_.push_back(std::move(cut));
    }

    [[nodiscard]] std::vector<Record> records() && { return std::move(records_); }

private:
    void add(Record record)
    {
        auto complaint = complaintAbout(record);
        if (complaint.empty()) {
            complaint = order_.complaintAbout(record);
        }
        if (!complaint.empty()) {
            throw std::runtime_error(complaint);
        }
        setPlace(record);
        records_.push_back(std::move(record));
    }

    static bool isWhole(std::string_view line)
    {
        try {
            (void)fromLine(line);
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    }

    [[nodiscard]] std::string where() const { return source_ + ":" + std::to_string(number_); }
    void setPlace(Record& record) const
    {
        record.file = source_;
        record.line = number_;
    }

    Word source_;
    int number_ = 0;
    OrderOfLines order_;
    std::vector<Record> records_;
};

void sortByTime(std::vector<Record>& records)
{
    std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.t < b.t; });
}

std::vector<Record> linesOf(std::string_view text, const std::string& source)
{
    FileReader reader(source);
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        reader.take(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    reader.takeLast(text);
    return std::move(reader).records();
}

} // namespace

std::vector<Record> parseHistory(std::string_view text, const std::string& source)
{
    auto records = linesOf(text, source);
    sortByTime(records);
    return records;
}

std::vector<Record> readHistory(const std::filesystem::path& path)
{
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::directory_iterator(path)) {
            if (entry.path().extension() == ".jsonl") {
                files.push_back(entry.path());
            }
        }
        std::sort(files.begin(), files.end());
        if (files.empty()) {
            throw std::runtime_error(path.string() + " has no *.jsonl");
        }
    } else {
        files.push_back(path);
    }
    std::vector<Record> all;
    for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        if (!in) {
            throw std::runtime_error("cannot read " + file.string());
        }
        const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        if (in.bad()) {
            throw std::runtime_error("cannot read " + file.string());
        }
        auto records = linesOf(text, file.filename().string());
        std::move(records.begin(), records.end(), std::back_inserter(all));
    }
    if (all.empty()) {
        throw std::runtime_error(path.string() + ": the history is empty");
    }
    sortByTime(all);
    return all;
}

} // namespace redislock::test::history
