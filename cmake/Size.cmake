# What keeps the programs small that link the library; the test packaging.size has the ceiling.

include(CheckLinkerFlag)

# redislock_without_unused_code(<library>...): of a static library, a program carries what it uses.
function(redislock_without_unused_code)
    check_linker_flag(CXX "LINKER:--gc-sections" REDISLOCK_LINKER_DROPS_SECTIONS)
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
        get_target_property(type ${target} TYPE)
        if(REDISLOCK_LINKER_DROPS_SECTIONS AND type STREQUAL "SHARED_LIBRARY")
            target_link_options(${target} PRIVATE "LINKER:--gc-sections")
        elseif(REDISLOCK_LINKER_DROPS_SECTIONS AND type STREQUAL "STATIC_LIBRARY")
            target_link_options(${target} INTERFACE "LINKER:--gc-sections")
        endif()
    endforeach()
endfunction()

# redislock_optimize_for_size(<target> <instructions>): a release for size, with functions of that length inlined though
# the code grows. GCC wrongly warns at this level that variables are uninitialized.
function(redislock_optimize_for_size target instructions)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE
            "$<$<CONFIG:Release>:SHELL:--param max-inline-insns-size=${instructions} -Wno-maybe-uninitialized>")
    endif()
endfunction()

# redislock_cold(<library> <source>...): those sources through which no lock runs on its way to Redis and back.
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
    redislock_optimize_for_size(${library} 12)
    redislock_optimize_for_size(${cold} 4)
endfunction()
