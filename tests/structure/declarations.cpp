#include "structure/declarations.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

namespace redislock::test {
namespace {

struct Word {
    std::string_view text;
    int line = 0;
};

bool isLetter(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The words of a source: identifiers, numbers, literals and single signs, without comments and directives.
class Words {
public:
    explicit Words(std::string_view source) : rest_(source)
    {
        while (!rest_.empty()) {
            next();
        }
    }

    std::vector<Word> all;

private:
    void next()
    {
        const char c = rest_.front();
        const bool isSpace = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (isSpace) {
            startsLine_ = startsLine_ || c == '\n';
            return drop(1);
        }
        if (c == '#' && startsLine_) {
            return drop(directive());
        }
        startsLine_ = false;
        if (rest_.starts_with("//")) {
            return drop(std::min(rest_.find('\n'), rest_.size()));
        }
        if (rest_.starts_with("/*")) {
            return drop(std::min(rest_.find("*/", 2), rest_.size() - 2) + 2);
        }
        if (rest_.starts_with("R\"")) {
            const auto open = rest_.find('(');
            const auto close = ")" + std::string(rest_.substr(2, open - 2)) + "\"";
            return take(std::min(rest_.find(close, open), rest_.size() - close.size()) + close.size());
        }
        if (c == '"' || c == '\'') {
            return take(literal(c));
        }
        if (isLetter(c)) {
            const auto end = std::find_if_not(rest_.begin(), rest_.end(), [this](const char& each) {
                return isLetter(each) || (each == '\'' && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0);
            });
            return take(static_cast<std::size_t>(end - rest_.begin()));
        }
        for (const std::string_view sign : {"::", "->", "&&", "..."}) {
            if (rest_.starts_with(sign)) {
                return take(sign.size());
            }
        }
        take(1);
    }

    [[nodiscard]] std::size_t directive() const
    {
        auto end = rest_.find('\n');
        while (end != std::string_view::npos && rest_[end - 1] == '\\') {
            end = rest_.find('\n', end + 1);
        }
        return std::min(end, rest_.size());
    }
    [[nodiscard]] std::size_t literal(char quote) const
    {
        std::size_t end = 1;
        while (end < rest_.size() && rest_[end] != quote) {
            end += rest_[end] == '\\' ? 2 : 1;
        }
        return std::min(end + 1, rest_.size());
    }
    void take(std::size_t count)
    {
        all.push_back({rest_.substr(0, count), line_});
        drop(count);
    }
    void drop(std::size_t count)
    {
        line_ += static_cast<int>(std::ranges::count(rest_.substr(0, count), '\n'));
        rest_.remove_prefix(count);
    }

    std::string_view rest_;
    int line_ = 1;
    bool startsLine_ = true;
};

using Access = Declaration::Access;
using Kind = Declaration::Kind;

class Reader {
public:
    explicit Reader(std::string_view source) : words_(Words(source).all) {}

    std::vector<Declaration> all()
    {
        while (at_ < words_.size()) {
            read({});
            at_ += at_ < words_.size() ? 1 : 0; // a brace too many
        }
        return std::move(found_);
    }

private:
    struct Scope {
        std::string name;
        bool isClass = false;
        Access access = Access::isPublic; ///< of the next declaration
        Access around = Access::isPublic;
    };

    [[nodiscard]] std::string_view word(std::size_t i) const
    {
        return i < words_.size() ? words_[i].text : std::string_view();
    }
    [[nodiscard]] bool isAt(std::initializer_list<std::string_view> of) const
    {
        return std::ranges::find(of, word(at_)) != of.end();
    }

    /// Goes behind the sign that closes the one here.
    void skip()
    {
        const auto open = word(at_);
        const std::string_view close = open == "{" ? "}" : open == "(" ? ")" : open == "[" ? "]" : ">";
        int depth = 0;
        for (; at_ < words_.size(); ++at_) {
            if (open == "<" && isAt({"(", "{", "["})) {
                skip();
                --at_;
                continue;
            }
            depth += word(at_) == open ? 1 : word(at_) == close ? -1 : 0;
            if (depth == 0) {
                ++at_;
                return;
            }
        }
    }

    /// The declarations of a scope, up to its closing brace.
    void read(Scope scope)
    {
        while (at_ < words_.size() && word(at_) != "}") {
            if (scope.isClass && isAt({"public", "protected", "private"}) && word(at_ + 1) == ":") {
                const auto own = isAt({"public"})      ? Access::isPublic
                                 : isAt({"protected"}) ? Access::isProtected
                                                       : Access::isPrivate;
                scope.access = std::max(own, scope.around);
                at_ += 2;
            } else if (isAt({";"})) {
                ++at_;
            } else {
                declaration(scope);
            }
        }
    }

    /// What has been read of a declaration.
    struct Head {
        bool hasParameters = false; ///< parentheses that belong to no type
        bool isAssigned = false;
        std::size_t named = 0; ///< the word before the parameters
        std::string_view keyword{};
        std::size_t afterKeyword = 0;
    };

    void declaration(const Scope& scope)
    {
        const auto begin = at_;
        Head head;
        while (at_ < words_.size() && !isAt({";", "}"})) {
            if (isAt({"{"})) {
                if (!brace(scope, head, begin)) {
                    continue; // it initializes something
                }
                return;
            }
            if (isAt({":"}) && head.hasParameters && !head.isAssigned) {
                initializers();
                continue;
            }
            headWord(head, begin);
        }
        add(scope, head, begin, at_);
        ++at_;
    }

    void headWord(Head& head, std::size_t begin)
    {
        const auto before = at_ > begin ? word(at_ - 1) : std::string_view();
        if (isAt({"["})) {
            return skip();
        }
        if (isAt({"operator"})) {
            return operatorName(head);
        }
        if (isAt({"<"}) && !head.isAssigned) {
            return skip();
        }
        if (isAt({"("})) {
            const bool isOfType = before == "alignas" || before == "decltype" || before == "requires" ||
                                  before == "explicit" || before == "noexcept" || before == "REDISLOCK_THREAD_SAFETY";
            if (!head.isAssigned && !head.hasParameters && !isOfType) {
                head.hasParameters = true;
                head.named = at_ - 1;
            }
            return skip();
        }
        head.isAssigned = head.isAssigned || isAt({"="});
        const bool mayBeKeyword = head.keyword.empty() && !head.hasParameters && !head.isAssigned;
        if (mayBeKeyword && isAt({"namespace", "class", "struct", "union", "enum", "using", "typedef", "friend",
                                  "concept", "static_assert", "extern"})) {
            head.keyword = word(at_);
            head.afterKeyword = at_ + 1;
        }
        ++at_;
    }

    /// An operator's name, and its parameters.
    void operatorName(Head& head)
    {
        head.named = at_++;
        if (isAt({"("})) {
            skip();
        }
        while (at_ < words_.size() && !isAt({"("})) {
            ++at_;
        }
        head.hasParameters = true;
        skip();
    }

    /// A constructor's initializers, up to its body.
    void initializers()
    {
        for (++at_; at_ < words_.size();) {
            const auto before = word(at_ - 1);
            if (isAt({"{"}) && (before == ")" || before == "}" || before == ">")) {
                return;
            }
            isAt({"(", "{", "<"}) ? skip() : void(++at_);
        }
    }

    /// At an opening brace. @return whether the declaration is over
    bool brace(const Scope& scope, const Head& head, std::size_t begin)
    {
        const auto open = at_;
        const bool isClass = head.keyword == "class" || head.keyword == "struct" || head.keyword == "union";
        if (head.keyword == "namespace" || (head.keyword == "extern" && !head.hasParameters && !head.isAssigned)) {
            auto name = textOf(head.afterKeyword, open);
            std::erase(name, ' ');
            ++at_;
            read({joined(scope.name, head.keyword == "extern" ? "" : name)});
            ++at_;
            return true;
        }
        if (isClass && !head.hasParameters && !head.isAssigned) {
            const auto name = nameOfClass(head, open);
            const auto index = add(scope, head, begin, open);
            found_[index].name = name;
            ++at_;
            const auto inside = head.keyword == "class" ? Access::isPrivate : Access::isPublic;
            const auto around = found_[index].access;
            read({joined(scope.name, name), true, std::max(inside, around), around});
            ++at_;
            found_[index].lines = linesFrom(begin);
            if (word(at_) != ";") { // it declares a member as well
                const auto member = at_;
                while (at_ < words_.size() && word(at_) != ";") {
                    isAt({"{"}) ? skip() : void(++at_);
                }
                add(scope, {}, member, at_);
            }
            return true;
        }
        skip();
        if (head.keyword == "enum") {
            add(scope, head, begin, at_);
            return true;
        }
        if (!head.hasParameters || head.isAssigned) {
            return false;
        }
        const auto from = words_.begin() + static_cast<std::ptrdiff_t>(head.named);
        const auto body = words_.begin() + static_cast<std::ptrdiff_t>(open);
        const auto end = std::ranges::find(from, body, ":", &Word::text); // initializers are no part of the signature
        const auto index = add(scope, head, begin, static_cast<std::size_t>(end - words_.begin()));
        found_[index].lines = linesFrom(begin);
        return true;
    }

    [[nodiscard]] std::size_t linesFrom(std::size_t begin) const
    {
        return static_cast<std::size_t>(words_[at_ - 1].line - words_[begin].line) + 1;
    }

    /// The last word before the bases, or before `final`.
    [[nodiscard]] std::string nameOfClass(const Head& head, std::size_t open) const
    {
        std::string name;
        for (auto i = head.afterKeyword; i < open && word(i) != ":" && word(i) != "final" && word(i) != "<"; ++i) {
            name = word(i) == "]" || word(i) == ")" ? std::string() : std::string(word(i));
        }
        return name;
    }

    static std::string joined(const std::string& scope, const std::string& name)
    {
        return scope.empty() || name.empty() ? scope + name : scope + "::" + name;
    }

    [[nodiscard]] std::string textOf(std::size_t begin, std::size_t end) const
    {
        std::string text;
        for (auto i = begin; i < end; ++i) {
            text += (text.empty() ? "" : " ") + std::string(word(i));
        }
        return text;
    }

    [[nodiscard]] Kind kindOf(const Scope& scope, const Head& head, std::size_t begin, std::size_t end) const
    {
        if (head.keyword == "class" || head.keyword == "struct" || head.keyword == "union") {
            return Kind::classHead;
        }
        if (head.keyword == "enum") {
            return Kind::enumeration;
        }
        if (head.keyword == "using" || head.keyword == "typedef") {
            return Kind::alias;
        }
        if (!head.keyword.empty() && head.keyword != "extern") {
            return Kind::other; // also friends
        }
        if (head.hasParameters) {
            return Kind::function;
        }
        for (auto i = begin; i < end; ++i) {
            if (word(i) == "static" || word(i) == "constexpr") {
                return Kind::staticData;
            }
        }
        return scope.isClass ? Kind::data : Kind::staticData;
    }

    std::size_t add(const Scope& scope, const Head& head, std::size_t begin, std::size_t end)
    {
        Declaration one;
        one.kind = kindOf(scope, head, begin, end);
        one.access = scope.access;
        one.scope = scope.name;
        one.name = head.hasParameters ? std::string(word(head.named)) : std::string();
        one.text = textOf(begin, end);
        one.isInClass = scope.isClass;
        found_.push_back(std::move(one));
        return found_.size() - 1;
    }

    std::vector<Word> words_;
    std::size_t at_ = 0;
    std::vector<Declaration> found_;
};

} // namespace

std::vector<Declaration> declarationsOf(std::string_view source)
{
    return Reader(source).all();
}

} // namespace redislock::test
