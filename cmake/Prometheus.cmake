# redislock::prometheus: an observer for Prometheus, in a library of its own, so that the main library needs no
# prometheus-cpp.
find_package(prometheus-cpp REQUIRED)

file(GLOB redislock_prometheus_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/prometheus/*.cpp")
add_library(redislock_prometheus ${redislock_prometheus_sources})
add_library(redislock::prometheus ALIAS redislock_prometheus)
redislock_export_api_only(redislock_prometheus)
target_sources(redislock_prometheus
    PUBLIC
        FILE_SET HEADERS BASE_DIRS include FILES "${PROJECT_SOURCE_DIR}/include/redislock/prometheus_observer.hpp")
target_include_directories(redislock_prometheus PRIVATE src)
target_link_libraries(redislock_prometheus PUBLIC redislock prometheus-cpp::core)
set_target_properties(redislock_prometheus PROPERTIES
    EXPORT_NAME prometheus
    UNITY_BUILD OFF # the preset `alone` is without it
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
redislock_set_warnings(redislock_prometheus)
redislock_without_static_objects(redislock_prometheus)
