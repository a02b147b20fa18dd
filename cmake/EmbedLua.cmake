# Turns lua/<kind>/<verb>.lua into a C++ source that holds the code of each script and its SHA1. Comments, indentation and
# empty lines are left out: every program carries the scripts of all kinds, and most of their text is comments.
#
#   redislock_embed_lua(<target> SCRIPTS <folder> TEMPLATE <file> OUTPUT <file>)
#
# Each script becomes the definition of `redislock::detail::scripts::<kindVerb>`: redis_lock/force_unlock.lua ->
# redisLockForceUnlock. Its declaration is written by hand; a script without a declaration does not compile. The same
# file is the build step (cmake -P): a changed, new or deleted script rebuilds the source.
#
# A line `--include parts/<part>.lua` in a script stands for the text of that file, which is not a script itself. The
# scripts as they are sent are in the folder `lua` beside the output; line numbers in Redis' errors are theirs.

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

# The code of a script without what only its readers need.
function(redislock_stripped_script text name out)
    if(text MATCHES "\\[=*\\[|\\\\\n")
        message(FATAL_ERROR "${name}.lua has a string or a comment of several lines, or [[; write it without")
    endif()
    set(strings "'([^'\\\n]|\\\\.)*'|\"([^\"\\\n]|\\\\.)*\"") # a -- inside of one begins no comment
    string(REGEX REPLACE "(${strings}|[^'\"-]+|-)(--[^\n]*)?" "\\1" text "\n${text}\n")
    string(REGEX REPLACE "[ \t]*\n[ \t\n]*" "\n" text "${text}")
    string(SUBSTRING "${text}" 1 -1 text)
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

# One piece of a text. An array of characters, not a string literal: any byte may occur in a file, and there is no need
# for escapes or for attention to a compiler's limit on literals.
function(redislock_piece identifier text out)
    string(HEX "${text}" bytes)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}") # 16 a line
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    set(${out} "constexpr char ${identifier}Bytes[] = {
    ${bytes}};
constexpr std::string_view ${identifier}{${identifier}Bytes, sizeof ${identifier}Bytes};
" PARENT_SCOPE)
endfunction()

# For the function below: appends `code` to a script, as a piece. A part is there once, whatever number of scripts
# includes it.
macro(redislock_append_piece identifier)
    get_property(is_there GLOBAL PROPERTY "redislock_has_${identifier}")
    if(NOT is_there)
        set_property(GLOBAL PROPERTY "redislock_has_${identifier}" TRUE)
        redislock_piece(${identifier} "${code}" piece)
        string(APPEND definitions "${piece}")
    endif()
    string(APPEND pieces "${identifier}, ")
    string(APPEND text "${code}")
endmacro()

# The definitions for one script.
function(redislock_script_definition folder path out)
    file(RELATIVE_PATH name "${folder}" "${path}")
    string(REGEX REPLACE "\\.lua$" "" name "${name}")
    redislock_camel_case("${name}" identifier)
    file(STRINGS "${path}" includes REGEX "^ *--include ")
    file(READ "${path}" rest)
    set(count 0)
    foreach(line IN LISTS includes ITEMS "")
        set(code "${rest}") # up to the next part, or the end
        if(line)
            string(FIND "${rest}" "${line}\n" begin)
            string(SUBSTRING "${rest}" 0 ${begin} code)
            string(LENGTH "${line}\n" length)
            math(EXPR end "${begin} + ${length}")
            string(SUBSTRING "${rest}" ${end} -1 rest)
        endif()
        redislock_stripped_script("${code}" "${name}" code)
        if(code)
            math(EXPR count "${count} + 1")
            redislock_append_piece(${identifier}${count})
        endif()
        if(line)
            string(REGEX REPLACE "^ *--include +(.*)\\.lua *$" "\\1" part "${line}")
            if(NOT EXISTS "${folder}/${part}.lua")
                message(FATAL_ERROR "${name}.lua includes ${part}.lua, which is not there")
            endif()
            file(READ "${folder}/${part}.lua" code)
            redislock_stripped_script("${code}" "${part}" code)
            redislock_camel_case("${part}" part)
            redislock_append_piece(${part})
        endif()
    endforeach()
    cmake_path(GET OUTPUT PARENT_PATH sent)
    file(WRITE "${sent}/lua/${name}.lua" "${text}")
    string(SHA1 sha1 "${text}")
    set(${out} "// ${name}.lua
${definitions}constexpr std::string_view ${identifier}Pieces[] = {${pieces}};
constinit const Script ${identifier}{\"${name}\", ${identifier}Pieces, \"${sha1}\"};
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
