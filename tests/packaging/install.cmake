# cmake -DBUILD=<build folder> -DPREFIX=<folder> -P install.cmake: installs into the emptied folder.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
foreach(file share/doc/redislock/LICENSE include/redislock/redislock.hpp include/redislock/version.hpp)
    if(NOT EXISTS "${PREFIX}/${file}")
        message(FATAL_ERROR "not installed: ${file}")
    endif()
endforeach()
