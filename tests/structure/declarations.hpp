// The declarations of a C++ source, as far as budgets and the public interface need them. It reads formatted code of
// this project and is no compiler: what it does not understand it takes for one declaration.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

struct Declaration {
    enum class Kind { function, data, staticData, classHead, enumeration, alias, other };
    enum class Access { isPublic, isProtected, isPrivate };

    Kind kind = Kind::other;
    Access access = Access::isPublic; ///< the most restricted one of it and of the classes around it
    std::string scope;                ///< the namespaces and classes around it, joined by "::"
    std::string name;                 ///< of the class, function or alias; may be empty for others
    std::string text;                 ///< its words, each one apart by a space, without a body
    std::size_t lines = 1;            ///< with the body
    bool isInClass = false;           ///< directly in a class
};

/// In the order of the source, classes before their members.
std::vector<Declaration> declarationsOf(std::string_view source);

} // namespace redislock::test
