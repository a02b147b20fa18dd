/// @file
/// Static objects that outlive all others.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace redislock::detail {

/// An object that is never destroyed: a static one in a function is there when it is first needed, also before main(),
/// and still there for the destructors of other static objects.
template <class Kept>
class Immortal {
public:
    template <class... Arguments>
    explicit Immortal(Arguments&&... arguments)
    {
        ::new (static_cast<void*>(bytes_)) Kept(std::forward<Arguments>(arguments)...);
    }
    Immortal(const Immortal&) = delete;
    Immortal& operator=(const Immortal&) = delete;

    [[nodiscard]] const Kept& get() const noexcept { return *std::launder(reinterpret_cast<const Kept*>(bytes_)); }

private:
    alignas(Kept) std::byte bytes_[sizeof(Kept)];
};

} // namespace redislock::detail
