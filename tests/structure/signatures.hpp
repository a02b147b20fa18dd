// The public interface as a list of signatures, and the changelog's part in changing it.
#pragma once

#include "structure/figures.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redislock::test {

/// What a user can name or call: the declarations of the headers, without private ones, bodies and the namespace
/// `detail`, a line each.
std::set<std::string> signaturesOf(const std::vector<SourceFile>& headers);

/// The lines of a snapshot, without remarks (`#`).
std::set<std::string> signaturesIn(std::string_view snapshot);

/// The signatures that came or went since the snapshot, and that no text between backticks in the changelog's section
/// *Unreleased* names: each by its class and name, as `Lock::unlock`. A line each; empty if all are named.
std::string unnamedChanges(const std::set<std::string>& signatures, const std::set<std::string>& snapshot,
                           std::string_view changelog);

} // namespace redislock::test
