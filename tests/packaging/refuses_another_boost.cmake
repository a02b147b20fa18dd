# cmake -DPACKAGE_DIR= -DINCLUDE_DIR= -DCOMPILER= -DGENERATOR= -DWORK_DIR= -P refuses_another_boost.cmake
#
# Makes a fake Boost 1.99.0 and asks for redislock together with it, in every way in which a consumer can have it.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
set(boost "${WORK_DIR}/boost")
file(WRITE "${boost}/BoostConfig.cmake" "
if(NOT TARGET Boost::headers)
    add_library(Boost::headers INTERFACE IMPORTED)
endif()
set(Boost_VERSION_STRING 1.99.0)
")
file(WRITE "${boost}/BoostConfigVersion.cmake" "
set(PACKAGE_VERSION 1.99.0)
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL 1.99.0)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL 1.99.0)
    set(PACKAGE_VERSION_EXACT TRUE)
endif()
")
file(WRITE "${boost}/include/boost/version.hpp" "#define BOOST_VERSION 109900\n")

function(expect_in text what where)
    string(FIND "${text}" "${what}" found)
    if(found EQUAL -1)
        message(FATAL_ERROR "${where} should have said \"${what}\", but said:\n${text}")
    endif()
endfunction()

# configure(<name> <lines before find_package(redislock)> <package folder> [REFUSED])
function(configure name before package)
    set(source "${WORK_DIR}/${name}")
    file(WRITE "${source}/CMakeLists.txt" "
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
${before}
find_package(redislock QUIET)
if(NOT redislock_FOUND)
    message(STATUS \"redislock_FOUND is false\")
endif()
find_package(redislock REQUIRED)
")
    execute_process(
        COMMAND ${CMAKE_COMMAND} -S "${source}" -B "${source}/build" -G "${GENERATOR}"
            "-DCMAKE_CXX_COMPILER=${COMPILER}" "-Dredislock_DIR=${package}"
        OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE status)
    if(NOT "REFUSED" IN_LIST ARGN)
        if(NOT status EQUAL 0)
            message(FATAL_ERROR "${name} should have been accepted:\n${output}${errors}")
        endif()
        return()
    endif()
    if(status EQUAL 0)
        message(FATAL_ERROR "${name} should have been refused:\n${output}${errors}")
    endif()
    string(REGEX REPLACE "[ \n]+" " " errors "${errors}") # CMake breaks its lines where it likes
    expect_in("${output}" "redislock_FOUND is false" "${name}")
    expect_in("${errors}" "redislock was built with Boost" "${name}")
endfunction()

# The same consumer with the right Boost; otherwise the refusals below would prove nothing.
file(STRINGS "${INCLUDE_DIR}/redislock/version.hpp" hint REGEX "built with Boost [0-9.]+")
string(REGEX REPLACE ".*built with Boost ([0-9.]+).*" "\\1" version "${hint}")
if(BOOST_ROOT)
    set(ENV{BOOST_ROOT} "${BOOST_ROOT}")
endif()
configure(same_boost "" "${PACKAGE_DIR}")
configure(same_boost_found_before "find_package(Boost ${version} REQUIRED)" "${PACKAGE_DIR}")

# The project has found another Boost already.
configure(other_boost_found_before
    "set(Boost_DIR \"${boost}\")\nfind_package(Boost CONFIG REQUIRED)" "${PACKAGE_DIR}" REFUSED)

# There is no Boost of the right version: the package wants a version that does not exist.
file(COPY "${PACKAGE_DIR}/" DESTINATION "${WORK_DIR}/package")
file(READ "${WORK_DIR}/package/redislock-config.cmake" config)
string(REPLACE "${version}" "1.98.0" config "${config}")
file(WRITE "${WORK_DIR}/package/redislock-config.cmake" "${config}")
configure(no_such_boost "" "${WORK_DIR}/package" REFUSED)

# The compiler sees another Boost.
file(WRITE "${WORK_DIR}/main.cpp" "#include <redislock/version.hpp>\n")
execute_process(
    COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE_DIR}" "-I${boost}/include" "${WORK_DIR}/main.cpp"
    ERROR_VARIABLE errors RESULT_VARIABLE status)
if(status EQUAL 0)
    message(FATAL_ERROR "version.hpp should have refused Boost 1.99.0")
endif()
expect_in("${errors}" "redislock was built with Boost ${version}" "version.hpp")
