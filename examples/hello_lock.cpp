#include <iostream>
#include <redislock/redislock.hpp>

int main(int argc, char** argv)
try {
    const std::string_view url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
    std::cout << "hello_lock [URL]: takes the lock stock:42 and gives it back\n";
    if (url == "--help") {
        return 0;
    }
    redislock::Client client(url);
    std::cout << "waits for the server at " << client.config().endpoint.str() << std::endl;
    client.connect(); // optional: says at once what is wrong with a server, which lock() waits for
    redislock::LockGuard held(client.getLock("stock:42")); // waits for its turn, in whatever process the others run
    std::cout << "stock:42 is ours until the end of this scope\n";
} catch (const redislock::LockError& error) {
    std::cerr << error.what() << '\n'; // connect to 127.0.0.1:6379: nothing listens at the address: …
    return 1;
}
