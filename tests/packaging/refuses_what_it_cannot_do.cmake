# cmake -DINCLUDE_DIR= -DCOMPILER= -DWORK_DIR= -P refuses_what_it_cannot_do.cmake
#
# A program that is compiled for an older C++, or not for Linux, gets one error that says so.

cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${WORK_DIR}")

# compile(<header> <flag>...): compiles a program of one line; sets status and errors, one error on each line.
function(compile header)
    file(WRITE "${WORK_DIR}/program.cpp" "#include <redislock/${header}>\n")
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
            "${COMPILER}" ${ARGN} -fsyntax-only -I "${INCLUDE_DIR}" "${WORK_DIR}/program.cpp"
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REPLACE ";" "," output "${output}") # which would make two of one
    string(REGEX MATCHALL "error:[^\n]*" errors "${output}")
    set(status ${status} PARENT_SCOPE)
    set(errors "${errors}" PARENT_SCOPE)
endfunction()

# expect_refusal(<text of the error> <header> <flag>...)
function(expect_refusal what header)
    compile(${header} ${ARGN})
    list(LENGTH errors count)
    if(status EQUAL 0 OR NOT count EQUAL 1 OR NOT errors MATCHES "${what}")
        message(FATAL_ERROR "<redislock/${header}> with ${ARGN} should have given one error, \"${what}\", but gave "
            "${count}: ${errors}")
    endif()
endfunction()

set(old "redislock needs C\\+\\+20")
set(elsewhere "redislock is for Linux only")
foreach(standard 11 14 17)
    expect_refusal("${old}" redislock.hpp -std=c++${standard})
endforeach()
expect_refusal("${elsewhere}" redislock.hpp -std=c++20 -U__linux__)
expect_refusal("${elsewhere}" redislock.hpp -std=c++17 -U__linux__) # no flag avoids this error

# A single header causes further errors; the first is the same.
file(GLOB headers RELATIVE "${INCLUDE_DIR}/redislock" "${INCLUDE_DIR}/redislock/*.hpp")
list(LENGTH headers count)
if(count LESS 30)
    message(FATAL_ERROR "the headers were not found")
endif()
foreach(header IN LISTS headers)
    expect_refusal("${old}" ${header} -std=c++17 -Wfatal-errors)
    expect_refusal("${elsewhere}" ${header} -std=c++20 -U__linux__ -Wfatal-errors)
endforeach()

compile(requirements.hpp -std=c++20)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "C++20 on Linux should have been enough, but: ${errors}")
endif()
