/// @file
/// How steady the machine is.
#pragma once

namespace redislock::bench {

/// A fixed amount of work for the processor alone: no memory, no system call, no server.
/// @return the ms that the work took. Their spread comes from the machine: frequencies, other programs, a host that
/// runs other guests.
double fixedWork();

} // namespace redislock::bench
