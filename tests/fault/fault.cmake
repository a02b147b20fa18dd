# Further needs of the fault tests: a clock for servers, and the folder of CATALOGUE.md.
if(TARGET redislock_fault_tests)
    # Preloaded into servers, so it must not contain a sanitizer.
    add_library(redislock_clock_shim MODULE support/clock_shim.cpp)
    target_compile_features(redislock_clock_shim PRIVATE cxx_std_20)
    target_compile_options(redislock_clock_shim PRIVATE -fno-sanitize=all)
    target_link_options(redislock_clock_shim PRIVATE -fno-sanitize=all)
    redislock_set_warnings(redislock_clock_shim)
    add_dependencies(redislock_fault_tests redislock_clock_shim)
    target_compile_definitions(redislock_fault_tests PRIVATE
        REDISLOCK_CLOCK_SHIM="$<TARGET_FILE:redislock_clock_shim>" REDISLOCK_TESTS_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(redislock_fault_tests PRIVATE ${CMAKE_DL_LIBS})
endif()
