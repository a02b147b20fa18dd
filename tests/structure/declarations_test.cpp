#include "structure/declarations.hpp"

#include "structure/figures.hpp"
#include "structure/signatures.hpp"

#include <gtest/gtest.h>

namespace redislock::test {
namespace {

/// Each declaration's scope, name and lines.
std::string shortOf(std::string_view source)
{
    constexpr const char* kinds[] = {"function", "data", "static", "class", "enum", "alias", "other"};
    std::string text;
    for (const auto& one : declarationsOf(source)) {
        text += kinds[static_cast<std::size_t>(one.kind)] + (" " + one.scope) + "/" + one.name;
        text += one.access == Declaration::Access::isPrivate ? " private" : "";
        text += one.lines > 1 ? " " + std::to_string(one.lines) + " lines\n" : "\n";
    }
    return text;
}

TEST(Declarations, OfAClassAreItsMembersWithTheirAccess)
{
    EXPECT_EQ(shortOf(R"(
#define NOTHING(x) \
    int x(int y);
namespace a::b {
/// A class; not int this(is);
class C final : public D<int> {
public:
    explicit C(int size) : E{size}, size_(size), all_({1, 2})
    {
        if (size > 0) { size_ = 0; }
    }
    C& operator=(const C&) = delete;
    bool operator()(std::string_view text) const;
    void run(std::function<void(int)> what = nullptr);

private:
    struct Inner { int x = 0; } inner_;
    std::function<void(int)> what_;
    static constexpr int most = f(1);
    [[no_unique_address]] std::array<int, 3> all_{1, 2, 3};
    friend class G;
    int size_ = g(3);
};
int free(C c) { return c(""); }
} // namespace a::b
)"),
              "class a::b/C 18 lines\n"
              "function a::b::C/C 4 lines\n"
              "function a::b::C/operator\n"
              "function a::b::C/operator\n"
              "function a::b::C/run\n"
              "class a::b::C/Inner private\n"
              "data a::b::C::Inner/ private\n"
              "data a::b::C/ private\n"
              "data a::b::C/ private\n"
              "static a::b::C/ private\n"
              "data a::b::C/ private\n"
              "other a::b::C/ private\n"
              "data a::b::C/ private\n"
              "function a::b/free\n");
}

TEST(Declarations, OfAFileAreWhatStandsOutsideOfBodies)
{
    EXPECT_EQ(
        shortOf("enum class E : int { one, two };\nusing F = void (*)(int);\nconst char* text = \"int f(int);\";\n"
                "template <class T> requires std::integral<T> T twice(T t)\n{\n    auto f = [](int x) { return x; };\n"
                "    return t;\n}\nextern \"C\" { int g(); }\nauto raw = R\"x(void h(); )\" })x\";\n"),
        "enum /\nalias /\nstatic /\nfunction /twice 5 lines\nfunction /g\nstatic /\n");
}

TEST(Figures, CountLinesFilesLongFunctionsAndLargeClasses)
{
    std::string large = "struct Large {\n";
    for (std::size_t i = 0; i <= manyFunctions; ++i) {
        large += "    void f" + std::to_string(i) + "();\n    int m" + std::to_string(i) + " = 0;\n";
    }
    large += "};\nvoid longOne()\n{\n" + std::string(longFunction, '\n') + "}\nvoid shortOne() {}\n";
    const auto figures = figuresOf({{"src/a/large.hpp", large}, {"src/a/small.cpp", "int x;\n"}, {"lua/b.lua", "x\n"}});
    EXPECT_EQ(figures, (Figures{{"lines of the product",
                                 2 + static_cast<std::size_t>(std::count(large.begin(), large.end(), '\n'))},
                                {"files in src/a", 2},
                                {"files in lua", 1},
                                {"functions longer than 40 lines", 1},
                                {"functions of Large", manyFunctions + 1},
                                {"members of Large", manyFunctions + 1}}));
}

TEST(Figures, MayNeitherGrowNorFallWithoutTheirCeilings)
{
    const auto ceilings = ceilingsIn(
        "# a remark\n100 lines of the product\n3 files in src/a # three are needed: TLS\n2 files in src/b\n");
    EXPECT_EQ(ceilings, (Figures{{"lines of the product", 100}, {"files in src/a", 3}, {"files in src/b", 2}}));
    EXPECT_EQ(differences({{"lines of the product", 91}, {"files in src/a", 3}, {"files in src/b", 2}}, ceilings, 10),
              "");
    EXPECT_EQ(differences({{"lines of the product", 101}, {"files in src/a", 2}, {"files in src/c", 1}}, ceilings, 10),
              "2 files in src/a: lower the ceiling, which is 3\n"
              "1 files in src/c: the ceiling is 0\n"
              "101 lines of the product: the ceiling is 100\n"
              "files in src/b: gone; its ceiling, 2, has to go, too\n");
}

TEST(Signatures, AreWhatAUserCanNameOrCall)
{
    const auto signatures = signaturesOf({{"include/redislock/c.hpp", R"(
namespace redislock {
namespace detail { class Hidden { public: void f(); }; }
class C {
public:
    bool tryLock(Wait wait = waitForever) const { return true; }
    using Retry = int;

protected:
    int left_ = 0;

private:
    int hidden_ = 0;
};
enum class E { one, two };
} // namespace redislock
)"}});
    EXPECT_EQ(signatures,
              (std::set<std::string>{"C: class C", "C::tryLock: bool tryLock ( Wait wait = waitForever ) const",
                                     "C::Retry: using Retry = int", "C::left_: int left_ = 0",
                                     "E: enum class E { one , two }"}));
}

TEST(Signatures, ChangeOnlyWhereTheChangelogNamesThem)
{
    const std::set<std::string> before{"C::f: void f ( )", "C::g: void g ( )"};
    const std::set<std::string> after{"C::f: void f ( int )", "C::g: void g ( )"};
    const std::string elsewhere = "## [Unreleased]\n\n### Added\n\n- `C::f`\n\n## [1.0]\n\n### Interface\n\n- `C::f`\n";
    EXPECT_EQ(unnamedChanges(before, before, elsewhere), "");
    EXPECT_EQ(unnamedChanges(after, before, elsewhere), "- C::f: void f ( )\n+ C::f: void f ( int )\n");
    EXPECT_EQ(unnamedChanges(after, before, "## [Unreleased]\n\n### Interface\n\n- `C::f` takes a number\n"), "");
}

} // namespace
} // namespace redislock::test
