# What keeps the programs small that link the library; the test packaging.size has the ceiling.

include(CheckCXXSourceRuns)
include(CheckLinkerFlag)

# redislock_small_programs(<library>...): of a static library, a program carries what it uses, and it is linked with
# short relocations, where linker and C library know them; -Wl,-z,nopack-relative-relocs after it takes that back, for a
# program that is to run with a glibc before 2.36. REDISLOCK_LINK_FLAGS: for the pkg-config file.
function(redislock_small_programs)
    check_linker_flag(CXX "LINKER:--gc-sections" REDISLOCK_LINKER_DROPS_SECTIONS)
    if(NOT CMAKE_CROSSCOMPILING)
        set(CMAKE_REQUIRED_LINK_OPTIONS "LINKER:-z,pack-relative-relocs" "LINKER:--fatal-warnings")
        check_cxx_source_runs("
            #include <cstdlib>
            #if !__GLIBC_PREREQ(2, 36)
            #error this loader may not know them
            #endif
            const char* texts[] = {\"a\", \"b\"};
            int main(int count, char**) { return texts[count - 1][0] == 'a' ? 0 : 1; }" REDISLOCK_SHORT_RELOCATIONS)
    endif()
    set(flags)
    if(REDISLOCK_LINKER_DROPS_SECTIONS)
        list(APPEND flags -Wl,--gc-sections)
    endif()
    if(REDISLOCK_SHORT_RELOCATIONS)
        list(APPEND flags -Wl,-z,pack-relative-relocs)
    endif()
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
        get_target_property(type ${target} TYPE)
        if(type STREQUAL "SHARED_LIBRARY" AND REDISLOCK_LINKER_DROPS_SECTIONS)
            target_link_options(${target} PRIVATE "LINKER:--gc-sections")
        elseif(type STREQUAL "STATIC_LIBRARY")
            target_link_options(${target} INTERFACE ${flags})
        endif()
    endforeach()
    list(JOIN flags " " flags)
    set(REDISLOCK_LINK_FLAGS " ${flags}" PARENT_SCOPE)
endfunction()

# redislock_cold(<library> <source>...): those sources through which no lock runs on its way to Redis and back. A release
# is optimised for size there, and for speed but with less inlining in the others. GCC wrongly warns at -Os that variables
# are uninitialized; it inlines functions of four instructions also then, which makes the code smaller still.
function(redislock_cold library)
    set(cold ${library}_cold)
    add_library(${cold} OBJECT ${ARGN})
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${cold}>)
    target_include_directories(${cold} PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${cold} PRIVATE $<TARGET_PROPERTY:${library},COMPILE_DEFINITIONS>)
    get_target_property(libraries ${library} LINK_LIBRARIES)
    target_link_libraries(${cold} PRIVATE ${libraries})
    target_compile_features(${cold} PRIVATE cxx_std_20)
    get_target_property(position ${library} POSITION_INDEPENDENT_CODE)
    set_target_properties(${cold} PROPERTIES
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ${position})
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O2>)
    target_compile_options(${cold} PRIVATE $<$<CONFIG:Release>:-Os>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        string(JOIN " " hot_flags -fno-tree-vectorize
            -falign-functions=1 -falign-loops=1 -falign-jumps=1 -falign-labels=1
            "--param max-inline-insns-single=14 --param max-inline-insns-auto=8")
        target_compile_options(${library} PRIVATE "$<$<CONFIG:Release>:SHELL:${hot_flags}>")
        target_compile_options(${cold} PRIVATE
            "$<$<CONFIG:Release>:SHELL:--param max-inline-insns-size=4 -Wno-maybe-uninitialized>")
    endif()
endfunction()
