# cmake -DLIBRARY=<shared library> -DNM=<nm> -P exports_its_api_only.cmake
#
# A shared library exports its API, and no symbols of its inner parts, of Boost or of the standard library.

cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${NM}" -D --defined-only --portability "${LIBRARY}"
    OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${output}") # name@@version type value size
set(api "^(_ZN|_ZNK|_ZTIN|_ZTSN|_ZTVN)9redislock")
# Inner functions that the headers call, or make the linker look for.
set(inside "^_ZN9redislock6detail(6codeOf|9failureOf|21intrusive_ptr_add_ref|21intrusive_ptr_release|39programAndLibraryHaveTheSameAsioOptions)")
set(others "")
foreach(line IN LISTS lines)
    string(REGEX REPLACE "[@ ].*" "" name "${line}")
    if(line MATCHES "^redislock_[0-9.]+[@ ].* ?A " OR name MATCHES "${inside}")
        continue()
    endif()
    if(NOT name MATCHES "${api}" OR name MATCHES "^(_ZN|_ZNK|_ZTIN|_ZTSN|_ZTVN)9redislock6detail")
        list(APPEND others "${line}")
    endif()
endforeach()
list(LENGTH others count)
if(count GREATER 0)
    list(SUBLIST others 0 20 others)
    list(JOIN others "\n  " others)
    message(FATAL_ERROR "${count} symbols do not belong to the API, such as\n  ${others}")
endif()

# Functions, exception types, and the category with which codes are compared.
foreach(name _ZN9redislock6Client8shutdown _ZN9redislock9LockGuardD1Ev _ZTIN9redislock9LockErrorE
        _ZN9redislock13errorCategoryEv)
    if(NOT output MATCHES "${name}")
        message(FATAL_ERROR "not exported: ${name}")
    endif()
endforeach()
