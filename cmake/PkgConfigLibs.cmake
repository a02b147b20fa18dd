# redislock_pkg_config_libs(<variable> <imported target>...): the libraries as a linker takes them, " -lfmt -lssl" and
# folders where the linker does not look by itself. Not `Requires:`, which would give users the include folders and the
# macros of libraries that only our sources include.
function(redislock_pkg_config_libs out)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
    foreach(target IN LISTS ARGN)
        string(REGEX REPLACE ".*:" "" file "lib${target}.a") # of a target that is built here
        get_target_property(is_imported ${target} IMPORTED)
        if(is_imported)
            get_target_property(file ${target} LOCATION_${config})
            cmake_path(GET file PARENT_PATH folder)
            if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
                string(APPEND libs " -L${folder}")
            endif()
        endif()
        cmake_path(GET file FILENAME file)
        string(REGEX REPLACE "^lib(.*)\\.(a|so[.0-9]*|dylib)$" "\\1" name "${file}")
        string(APPEND libs " -l${name}")
    endforeach()
    set(${out} "${libs}" PARENT_SCOPE)
endfunction()
