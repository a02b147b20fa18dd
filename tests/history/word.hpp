/// @file
/// Texts of which a history has few that differ.
#pragma once

#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_set>

namespace redislock::test::history {

/// A text that is kept once for all its copies, and for ever. Any thread.
class Word {
public:
    Word()
    {
        static const Word none{std::string_view()};
        *this = none;
    }
    Word(std::string_view text)
    {
        static std::mutex mutex;
        static std::unordered_set<std::string> texts;
        const std::lock_guard lock(mutex);
        text_ = &*texts.emplace(text).first;
    }
    Word(const std::string& text) : Word(std::string_view(text)) {}
    Word(const char* text) : Word(std::string_view(text)) {}

    [[nodiscard]] const std::string& str() const noexcept { return *text_; }
    operator const std::string&() const noexcept { return *text_; }
    operator std::string_view() const noexcept { return *text_; }

    [[nodiscard]] bool empty() const noexcept { return text_->empty(); }
    friend bool operator==(const Word& a, const Word& b) noexcept { return a.text_ == b.text_; }
    friend bool operator==(const Word& a, std::string_view b) noexcept { return *a.text_ == b; }
    friend bool operator==(const Word& a, const std::string& b) noexcept { return *a.text_ == b; }
    friend bool operator==(const Word& a, const char* b) noexcept { return *a.text_ == b; }
    friend std::string operator+(const std::string& a, const Word& b) { return a + *b.text_; }
    friend std::string operator+(const Word& a, const std::string& b) { return *a.text_ + b; }
    friend std::string operator+(const char* a, const Word& b) { return a + *b.text_; }
    friend std::string operator+(const Word& a, const char* b) { return *a.text_ + b; }
    friend std::ostream& operator<<(std::ostream& out, const Word& word) { return out << *word.text_; }

private:
    const std::string* text_ = nullptr;
};

} // namespace redislock::test::history
