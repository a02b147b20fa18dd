# cmake -DBUILD=<build folder> -DPREFIX=<folder> -DTOOL=<whether it is built> -P install.cmake: installs into the emptied
# folder.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
set(tool_files)
if(TOOL)
    set(tool_files bin/redislock share/man/man1/redislock.1 share/bash-completion/completions/redislock
        share/zsh/site-functions/_redislock share/fish/vendor_completions.d/redislock.fish)
    execute_process(COMMAND "${PREFIX}/bin/redislock" --version OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
foreach(file ${tool_files} share/doc/redislock/LICENSE
        include/redislock/redislock.hpp include/redislock/src.hpp include/redislock/version.hpp)
    if(NOT EXISTS "${PREFIX}/${file}")
        message(FATAL_ERROR "not installed: ${file}")
    endif()
endforeach()

# The port of vcpkg cannot read the version from CMakeLists.txt.
file(GLOB version "${PREFIX}/lib*/cmake/redislock/redislock-config-version.cmake"
    "${PREFIX}/lib/*/cmake/redislock/redislock-config-version.cmake")
include("${version}")
file(READ "${CMAKE_CURRENT_LIST_DIR}/../../packaging/vcpkg/redislock/vcpkg.json" port)
string(JSON port_version GET "${port}" version)
if(NOT port_version STREQUAL PACKAGE_VERSION)
    message(FATAL_ERROR "vcpkg.json has version ${port_version}, not ${PACKAGE_VERSION}")
endif()

# A program that only links the library needs none of the tool's dependencies.
file(GLOB_RECURSE package "${PREFIX}/lib*/cmake/redislock/*.cmake" "${PREFIX}/lib*/pkgconfig/*.pc")
foreach(file IN LISTS package)
    file(READ "${file}" text)
    if(text MATCHES "CLI11|nlohmann|redislock_tool")
        message(FATAL_ERROR "${file} names what belongs to the tool")
    endif()
endforeach()
