# redislock_without_static_objects(<library>): Clang refuses static objects that are made before main() or destroyed at
# the end of a program, when other static objects may already, or still, use locks.
function(redislock_without_static_objects target)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        target_compile_options(${target} PRIVATE -Wglobal-constructors -Wexit-time-destructors
            -Wdocumentation) # of public headers too: a comment describes no parameter that does not exist
    endif()
endfunction()

# The compiler flags of our own targets, in one place; they do not reach a consumer.
function(redislock_set_warnings target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
        $<$<BOOL:${REDISLOCK_WARNINGS_AS_ERRORS}>:-Werror>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        target_compile_options(${target} PRIVATE -Wthread-safety)
    endif()
    # GCC 12 sees overlapping copies in every `string = "literal"` that it inlines (its bug 105651).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    # GCC treats a file that is compiled together with others as a header, in which this warning would matter.
    target_compile_options(${target} PRIVATE
        $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>)
endfunction()
