# A shared library exports its API and nothing else: what is marked with REDISLOCK_EXPORT, under the library's
# version. A
# static one has hidden symbols only, so that a shared library of which it becomes part exports none of it.
function(redislock_export_api_only target)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    set(REDISLOCK_EXPORT_ATTRIBUTE "")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
        set(REDISLOCK_EXPORT_ATTRIBUTE "[[gnu::visibility(\"default\")]]")
        # For templates of the standard library and of Boost, which make themselves visible.
        set(exports "${PROJECT_BINARY_DIR}/exports.map")
        configure_file(cmake/exports.map.in "${exports}" @ONLY)
        target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${exports}")
    endif()
    configure_file(include/redislock/export.hpp.in include/redislock/export.hpp @ONLY)
endfunction()

# redislock_inside_of(<library> <name>): what links the library with all that it hides, as our own tests do.
function(redislock_inside_of library name)
    get_target_property(type ${library} TYPE)
    if(NOT type STREQUAL "SHARED_LIBRARY")
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE ${library})
        return()
    endif()
    add_library(${name} STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${library}>)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    target_include_directories(${name} INTERFACE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_features(${name} INTERFACE cxx_std_20)
    target_link_libraries(${name} INTERFACE $<TARGET_PROPERTY:${library},LINK_LIBRARIES>)
endfunction()
