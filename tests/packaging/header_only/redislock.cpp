#include <redislock/src.hpp>
