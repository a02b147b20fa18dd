# cmake -DINCLUDE_DIR= -DCOMPILER= -DBOOST_FLAGS= -DWORK_DIR= -P tells_a_wrong_handler.cmake
#
# For a handler that a call cannot use the compiler reports one error, which names the call.

cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${WORK_DIR}")

# compile(<statement>): sets status, output and the errors in the output.
function(compile statement)
    file(WRITE "${WORK_DIR}/program.cpp" "#include <redislock/redislock.hpp>
using boost::system::error_code;
using namespace redislock;
void use(Client& client, RedisLock& lock, Semaphore& semaphore, LockGuard& held)
{
    (void)client, (void)lock, (void)semaphore, (void)held;
    ${statement}
}
")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
            "${COMPILER}" -std=c++20 -fsyntax-only -I "${INCLUDE_DIR}" ${BOOST_FLAGS} "${WORK_DIR}/program.cpp"
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REPLACE ";" "," output "${output}") # which would make two of one
    string(REGEX MATCHALL "error:[^\n]*" errors "${output}")
    set(status ${status} PARENT_SCOPE)
    set(output "${output}" PARENT_SCOPE)
    set(errors "${errors}" PARENT_SCOPE)
endfunction()

# expect_refusal(<function> <statement>)
function(expect_refusal name statement)
    compile("${statement}")
    list(LENGTH errors count)
    if(status EQUAL 0 OR NOT count EQUAL 1 OR NOT errors MATCHES "no matching (member )?function for call to .*${name}"
            OR NOT output MATCHES "CompletionTokenFor")
        message(FATAL_ERROR "${statement} should have given one error about ${name}, but gave ${count}: ${errors}")
    endif()
endfunction()

# The same calls without mistakes; otherwise the refusals would prove nothing.
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

expect_refusal(asyncLock "lock.asyncLock([](int) {});")
expect_refusal(asyncLock "lock.asyncLock(std::chrono::seconds(10), [](error_code) {});")
expect_refusal(asyncRelease "held.asyncRelease([](error_code, LockGuard) {});")
expect_refusal(asyncAcquire "semaphore.asyncAcquire(1, [](error_code, LockGuard) {});")
expect_refusal(asyncConnect "client.asyncConnect(std::chrono::seconds(1));")
expect_refusal(asyncShutdown "client.asyncShutdown([] {});")
