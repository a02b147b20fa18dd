/// @file
/// How steady the machine is.
#pragma once

namespace redislock::bench {

/// A fixed amount of work of the processor alone: no memory, no system call, no server. @return the ms that it took.
/// Its spread is the machine's own: frequencies, other programs, a host that gives the processor to others.
double fixedWork();

} // namespace redislock::bench
