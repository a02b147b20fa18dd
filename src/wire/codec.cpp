// The only file that includes hiredis: its reader, with functions of our own that build Reply values under limits.
#include "wire/codec.hpp"

#include "redislock/error.hpp"

#include <dlfcn.h>
#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace redislock::detail {

/// The reply being read. hiredis keeps its address from one call to the next.
struct ReplyBeingRead {
    Reply root;
    std::size_t elements = 0;
    ReplyLimits limits;
};

namespace {

// hiredis 1.x counts elements in size_t, 0.14 in int
#if HIREDIS_MAJOR >= 1
using ElementCount = std::size_t;
#else
using ElementCount = int;
#endif

ReplyBeingRead& buildingOf(const redisReadTask* task)
{
    return *static_cast<ReplyBeingRead*>(task->privdata);
}

/// Where the value of this task belongs: the root, or its place in the enclosing array.
Reply* placeOf(const redisReadTask* task)
{
    if (task->parent == nullptr) {
        return &buildingOf(task).root;
    }
    auto& siblings = static_cast<Reply*>(task->parent->obj)->elements;
    const auto index = static_cast<std::size_t>(task->idx);
    return index < siblings.size() ? &siblings[index] : nullptr;
}

void* createText(const redisReadTask* task, char* text, size_t length)
{
    Reply* place = placeOf(task);
    if (place == nullptr) {
        return nullptr;
    }
    switch (task->type) {
    case REDIS_REPLY_ERROR:
        place->kind = Reply::Kind::error;
        break;
    case REDIS_REPLY_STATUS:
        place->kind = Reply::Kind::status;
        break;
    case REDIS_REPLY_STRING:
        place->kind = Reply::Kind::text;
        break;
    default:
        return nullptr; // a type of RESP3, which was not asked for
    }
    place->text.assign(text, length);
    return place;
}

void* createArray(const redisReadTask* task, ElementCount count)
{
    Reply* place = placeOf(task);
    auto& total = buildingOf(task).elements;
    const std::size_t most = buildingOf(task).limits.elements;
    const auto wanted = static_cast<std::size_t>(count);
    if (place == nullptr || wanted > most || total + wanted > most || task->type != REDIS_REPLY_ARRAY) {
        return nullptr;
    }
    total += wanted;
    place->kind = Reply::Kind::array;
    place->elements.clear(); // not assign(): it would keep the capacity of each element
    place->elements.resize(wanted);
    return place;
}

void* createInteger(const redisReadTask* task, long long value)
{
    Reply* place = placeOf(task);
    if (place != nullptr) {
        place->kind = Reply::Kind::integer;
        place->integer = value;
    }
    return place;
}

void* createNil(const redisReadTask* task)
{
    Reply* place = placeOf(task);
    if (place != nullptr) {
        place->kind = Reply::Kind::nil;
    }
    return place;
}

#if HIREDIS_MAJOR >= 1
void* refuseDouble(const redisReadTask* /*task*/, double /*value*/, char* /*text*/, size_t /*length*/)
{
    return nullptr;
}

void* refuseBool(const redisReadTask* /*task*/, int /*value*/)
{
    return nullptr;
}
#endif

void freeNothing(void* /*reply*/) {} // values live in the root

constexpr redisReplyObjectFunctions functions() noexcept
{
    redisReplyObjectFunctions f{};
    f.createString = createText;
    f.createArray = createArray;
    f.createInteger = createInteger;
    f.createNil = createNil;
    f.freeObject = freeNothing;
#if HIREDIS_MAJOR >= 1
    f.createDouble = refuseDouble; // types of RESP3, which was not asked for
    f.createBool = refuseBool;
#endif
    return f;
}

constinit redisReplyObjectFunctions replyFunctions = functions(); // a static object may lock before main()

} // namespace

struct ReplyReader::Impl {
    redisReader* reader = redisReaderCreateWithFunctions(&replyFunctions);
    ReplyBeingRead building;
    std::size_t fed = 0; ///< bytes since the last complete reply
    bool broken = false;

    explicit Impl(ReplyLimits limits)
    {
        building.limits = limits;
        if (reader == nullptr) {
            throw std::bad_alloc();
        }
        reader->privdata = &building;
    }
    ~Impl() { redisReaderFree(reader); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
};

ReplyReader::ReplyReader(ReplyLimits limits) : impl_(std::make_unique<Impl>(limits)) {}

ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&&) noexcept = default;
ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes)
{
    impl_->fed += bytes.size();
    if (redisReaderFeed(impl_->reader, bytes.data(), bytes.size()) != REDIS_OK) {
        impl_->broken = true;
    }
}

ReplyReader::Status ReplyReader::next(Reply& reply)
{
    if (impl_->broken) {
        return Status::broken;
    }
    void* made = nullptr;
    if (redisReaderGetReply(impl_->reader, &made) != REDIS_OK) {
        impl_->broken = true;
        return Status::broken;
    }
    if (made == nullptr) {
        impl_->broken = impl_->fed > impl_->building.limits.bytes;
        return impl_->broken ? Status::broken : Status::needMore;
    }
    impl_->fed = impl_->reader->len - impl_->reader->pos;
    impl_->building.elements = 0;
    std::swap(reply, impl_->building.root); // keeps the capacity of both
    return Status::complete;
}

namespace {

/// The beginning of a reader of hiredis 1.0 and newer. Those before that have a larger one.
struct ReaderSince1 {
    int err;
    char errstr[128];
    char* buf;
    std::size_t pos, len, maxbuf;
    long long maxelements;
    void* task;
    int tasks, ridx;
    void *reply, *fn;
};

} // namespace

void requireOwnHiredis()
{
    redisReplyObjectFunctions mark{};
    const std::unique_ptr<redisReader, void (*)(redisReader*)> reader(redisReaderCreateWithFunctions(&mark),
                                                                      redisReaderFree);
    const auto hasMarkAt = [&](std::size_t offset) {
        const void* const expected = &mark;
        return reader &&
               std::memcmp(reinterpret_cast<const char*>(reader.get()) + offset, &expected, sizeof expected) == 0;
    };
    const bool isSince1 = hasMarkAt(offsetof(ReaderSince1, fn)); // first: within the smaller of the two
    if (reader && (HIREDIS_MAJOR >= 1 ? !isSince1 : isSince1 || !hasMarkAt(offsetof(redisReader, fn)))) {
        Dl_info found{};
        const bool isKnown = ::dladdr(reinterpret_cast<const void*>(&redisReaderCreateWithFunctions), &found) != 0;
        throw LockError(Errc::unsupported, "redislock was built with hiredis " + std::to_string(HIREDIS_MAJOR) + '.' +
                                               std::to_string(HIREDIS_MINOR) + ", but the program uses a version " +
                                               (isSince1 ? "from 1.0 on" : "before 1.0") +
                                               (isKnown ? std::string(", in ") + found.dli_fname : std::string()));
    }
}

} // namespace redislock::detail
