// A program with the library without TLS, which does not link OpenSSL either.
#include <redislock/redislock.hpp>

#include <iostream>

int main()
{
    try {
        const redislock::Client client("rediss://localhost");
    } catch (const redislock::LockError& error) {
        std::cout << error.what() << '\n';
        return error.code() == redislock::Errc::unsupported ? 0 : 1;
    }
    return 1;
}
