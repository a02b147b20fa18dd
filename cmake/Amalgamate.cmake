# Makes one header of all sources of the library, for programs that compile it themselves; see doc/header_only.md.
#
#   redislock_amalgamate(<target> SOURCES <folder> GENERATED <source> TEMPLATE <file> OUTPUT <file>)
#
# <target> becomes a custom target that makes the header. It contains every source of the folder, but for those of
# prometheus/, and before each of them the private headers that it includes, once. The macros that these define are
# undefined at its end. The same file is the build step (cmake -P).

function(redislock_amalgamate target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCES;GENERATED;TEMPLATE;OUTPUT" "")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${arg_SOURCES}/*.[ch]pp")
    add_custom_command(
        OUTPUT "${arg_OUTPUT}"
        COMMAND ${CMAKE_COMMAND} "-DSOURCES=${arg_SOURCES}" "-DGENERATED=${arg_GENERATED}"
                "-DTEMPLATE=${arg_TEMPLATE}" "-DOUTPUT=${arg_OUTPUT}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
        DEPENDS ${sources} "${arg_GENERATED}" "${arg_TEMPLATE}" "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
        COMMENT "Making one header of the sources"
        VERBATIM)
    add_custom_target(${target} DEPENDS "${arg_OUTPUT}")
endfunction()

# Appends the private headers that a file includes, unless they are there already, then the file itself.
function(redislock_append path name)
    file(READ "${path}" text)
    string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
    foreach(include IN LISTS includes)
        string(REGEX REPLACE ".*\"(.*)\"" "\\1" header "${include}")
        if(EXISTS "${SOURCES}/${header}")
            string(REPLACE "${include}\n" "" text "${text}")
            get_property(is_there GLOBAL PROPERTY "redislock_has_${header}")
            if(NOT is_there)
                set_property(GLOBAL PROPERTY "redislock_has_${header}" TRUE)
                redislock_append("${SOURCES}/${header}" "${header}")
            endif()
        endif()
    endforeach()
    string(REPLACE "#pragma once\n" "" text "${text}")
    set_property(GLOBAL APPEND_STRING PROPERTY redislock_text "\n// --- ${name}\n\n${text}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    cmake_policy(VERSION 3.25)
    file(GLOB_RECURSE sources RELATIVE "${SOURCES}" "${SOURCES}/*.cpp")
    list(FILTER sources EXCLUDE REGEX "^prometheus/")
    foreach(source IN LISTS sources)
        redislock_append("${SOURCES}/${source}" "${source}")
    endforeach()
    redislock_append("${GENERATED}" "generated")
    get_property(REDISLOCK_SOURCES GLOBAL PROPERTY redislock_text)
    string(REGEX MATCHALL "#define [A-Za-z_0-9]+" macros "${REDISLOCK_SOURCES}")
    list(REMOVE_DUPLICATES macros)
    list(TRANSFORM macros REPLACE "#define" "#undef")
    list(JOIN macros "\n" REDISLOCK_UNDEFINITIONS)
    configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
    file(TOUCH_NOCREATE "${OUTPUT}") # newer than its inputs even when the text came out the same
endif()
