# cmake -DINCLUDE_DIR= -DCOMPILER= -DBOOST_FLAGS= -DWORK_DIR= -P tells_a_wrong_handler.cmake
#
# For a handler that a call cannot use the compiler reports one error, which names the call.

cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${WORK_DIR}")

# compile(<statements>): sets status, output and the errors in the output, each with what the compiler says about it.
function(compile statements)
    file(WRITE "${WORK_DIR}/program.cpp" "#include <redislock/redislock.hpp>
using boost::system::error_code;
using namespace redislock;
void use(Client& client, RedisLock& lock, Semaphore& semaphore, LockGuard& held)
{
    (void)client, (void)lock, (void)semaphore, (void)held;
    ${statements}
}
")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
            "${COMPILER}" -std=c++20 -fsyntax-only -I "${INCLUDE_DIR}" ${BOOST_FLAGS} "${WORK_DIR}/program.cpp"
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX REPLACE "[];[]" "," errors "${output}") # which would separate or join elements
    string(REPLACE "error:" ";" errors "${errors}")
    list(POP_FRONT errors)
    set(status ${status} PARENT_SCOPE)
    set(output "${output}" PARENT_SCOPE)
    set(errors "${errors}" PARENT_SCOPE)
endfunction()

# The calls below without their mistakes; otherwise the refusals would prove nothing.
compile("
    lock.asyncLock([](error_code, LockGuard) {});
    lock.asyncLock(std::chrono::seconds(10), [](error_code, LockGuard) {});
    held.asyncRelease([](error_code, Unlocked) {});
    semaphore.asyncAcquire(1, [](error_code) {});
    client.asyncConnect([](error_code) {});
    client.asyncShutdown([](error_code, bool) {});")
if(NOT status EQUAL 0)
    message(FATAL_ERROR "right handlers should have been taken, but: ${output}")
endif()

set(names asyncLock asyncLock asyncRelease asyncAcquire asyncConnect asyncShutdown)
compile("
    lock.asyncLock([](int) {});
    lock.asyncLock(std::chrono::seconds(10), [](error_code) {});
    held.asyncRelease([](error_code, LockGuard) {});
    semaphore.asyncAcquire(1, [](error_code, LockGuard) {});
    client.asyncConnect(std::chrono::seconds(1));
    client.asyncShutdown([] {});")
list(LENGTH errors count)
if(status EQUAL 0 OR NOT count EQUAL 6)
    message(FATAL_ERROR "six wrong handlers should have given six errors, but gave ${count}: ${output}")
endif()
foreach(name error IN ZIP_LISTS names errors)
    if(NOT error MATCHES "^ no matching (member )?function for call to .*${name}" OR NOT error MATCHES "CompletionTokenFor")
        message(FATAL_ERROR "the error should have been about ${name}, but is: ${error}")
    endif()
endforeach()
