# Turns lua/<kind>/<verb>.lua into a C++ source that holds the text of each script, byte for byte, and its SHA1.
#
#   redislock_embed_lua(<target> SCRIPTS <folder> TEMPLATE <file> OUTPUT <file>)
#
# Each script becomes the definition of `redislock::detail::scripts::<kindVerb>`: redis_lock/force_unlock.lua ->
# redisLockForceUnlock. Its declaration is written by hand; a script without a declaration does not compile. The same
# file is the build step (cmake -P): a changed, new or deleted script rebuilds the source.
#
# A line `--include parts/<part>.lua` in a script stands for the text of that file, which is not a script itself. The
# scripts as they are sent are in the folder `lua` beside the output.

function(redislock_embed_lua target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPTS;TEMPLATE;OUTPUT" "")
    file(GLOB_RECURSE scripts CONFIGURE_DEPENDS "${arg_SCRIPTS}/*.lua")
    add_custom_command(
        OUTPUT "${arg_OUTPUT}"
        COMMAND ${CMAKE_COMMAND} "-DSCRIPTS=${arg_SCRIPTS}" "-DTEMPLATE=${arg_TEMPLATE}" "-DOUTPUT=${arg_OUTPUT}"
                -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
        DEPENDS ${scripts} "${arg_TEMPLATE}" "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
        COMMENT "Embedding the Lua scripts"
        VERBATIM)
    target_sources(${target} PRIVATE "${arg_OUTPUT}")
endfunction()

# redis_lock/force_unlock -> redisLockForceUnlock
function(redislock_camel_case name out)
    string(REGEX MATCHALL "[A-Za-z0-9]+" words "${name}")
    list(POP_FRONT words result)
    foreach(word IN LISTS words)
        string(SUBSTRING "${word}" 0 1 first)
        string(SUBSTRING "${word}" 1 -1 rest)
        string(TOUPPER "${first}" first)
        string(APPEND result "${first}${rest}")
    endforeach()
    set(${out} "${result}" PARENT_SCOPE)
endfunction()

# The script as it is sent: a file with all included parts.
function(redislock_expanded_script folder path name out)
    file(STRINGS "${path}" includes REGEX "^ *--include ")
    if(includes)
        file(READ "${path}" text)
        foreach(line IN LISTS includes)
            string(REGEX REPLACE "^ *--include +" "" part "${line}")
            if(NOT EXISTS "${folder}/${part}")
                message(FATAL_ERROR "${name}.lua includes ${part}, which is not there")
            endif()
            file(READ "${folder}/${part}" text_of_part)
            string(REPLACE "${line}\n" "${text_of_part}" text "${text}")
        endforeach()
        cmake_path(GET OUTPUT PARENT_PATH path)
        string(APPEND path "/lua/${name}.lua")
        file(WRITE "${path}" "${text}")
    endif()
    set(${out} "${path}" PARENT_SCOPE)
endfunction()

# The definitions for one script. An array of characters, not a string literal: any byte may occur in a file, and there
# is no need for escapes or for attention to a compiler's limit on literals. The last NUL is not part of the text.
function(redislock_script_definition folder path out)
    file(RELATIVE_PATH name "${folder}" "${path}")
    string(REGEX REPLACE "\\.lua$" "" name "${name}")
    redislock_camel_case("${name}" identifier)
    redislock_expanded_script("${folder}" "${path}" "${name}" path)
    file(SHA1 "${path}" sha1)
    file(SIZE "${path}" size)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}") # 16 a line
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    set(${out} "// ${name}.lua
namespace redislock::detail::scripts {
constexpr char ${identifier}Text[] = {
    ${bytes}'\\0'};
constinit const Script ${identifier}{\"${name}\", {${identifier}Text, ${size}}, \"${sha1}\"};
} // namespace redislock::detail::scripts
" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    cmake_policy(VERSION 3.25)
    file(GLOB_RECURSE scripts "${SCRIPTS}/*.lua")
    list(FILTER scripts EXCLUDE REGEX "/parts/[^/]*$")
    list(SORT scripts)
    foreach(script IN LISTS scripts)
        redislock_script_definition("${SCRIPTS}" "${script}" definition)
        string(APPEND REDISLOCK_SCRIPT_DEFINITIONS "\n${definition}")
    endforeach()
    configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
    file(TOUCH_NOCREATE "${OUTPUT}") # newer than its inputs even when the text came out the same
endif()
