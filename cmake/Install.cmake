# What `cmake --install` installs, and where: library, headers, CMake package, pkg-config file, licence; in the components
# `development`, `runtime` (a shared library, as programs load it) and `tool` (see tool/CMakeLists.txt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/redislock")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

install(TARGETS redislock
    EXPORT redislock-targets
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILE_SET generated_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS redislock_header_only
    EXPORT redislock-targets
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT redislock-targets NAMESPACE redislock:: DESTINATION "${package_dir}")
if(REDISLOCK_PROMETHEUS) # find_package(redislock COMPONENTS prometheus)
    install(TARGETS redislock_prometheus
        EXPORT redislock-prometheus-targets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT redislock-prometheus-targets NAMESPACE redislock:: DESTINATION "${package_dir}")
endif()

# A program that links a static library must link the library's dependencies too; a shared library brings them along.
set(REDISLOCK_PACKAGES "hiredis, fmt")
set(REDISLOCK_LINKED "Hiredis fmt")
set(libraries hiredis::hiredis fmt::fmt)
if(REDISLOCK_WITH_TLS)
    string(APPEND REDISLOCK_PACKAGES ", openssl >= 3.0")
    string(APPEND REDISLOCK_LINKED " OpenSSL")
    list(APPEND libraries OpenSSL::SSL OpenSSL::Crypto)
endif()
set(REDISLOCK_DEPENDENCIES "Threads")
get_target_property(library_type redislock TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
    string(APPEND REDISLOCK_DEPENDENCIES " ${REDISLOCK_LINKED}")
    if(REDISLOCK_FMT_HEADER_ONLY)
        string(REPLACE " fmt" "" REDISLOCK_DEPENDENCIES "${REDISLOCK_DEPENDENCIES}")
        list(REMOVE_ITEM libraries fmt::fmt)
    endif()
    include(PkgConfigLibs)
    redislock_pkg_config_libs(REDISLOCK_PC_LIBS ${libraries})
    string(APPEND REDISLOCK_PC_LIBS "${REDISLOCK_LINK_FLAGS}")
endif()
if(REDISLOCK_WITH_TLS)
    set(REDISLOCK_TLS_FLAG " -DREDISLOCK_WITH_TLS=1")
endif()
configure_file(cmake/redislock-config.cmake.in redislock-config.cmake @ONLY)
write_basic_package_version_file(redislock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/redislock-config.cmake"
    "${PROJECT_BINARY_DIR}/redislock-config-version.cmake"
    cmake/FindHiredis.cmake
    DESTINATION "${package_dir}")

# Paths relative to the .pc file itself, so that an installed tree can be moved.
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
if(libdir_is_absolute)
    set(REDISLOCK_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
        BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE up)
    set(REDISLOCK_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(package redislock redislock-header-only)
    configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${package}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/redislock")

if(PROJECT_IS_TOP_LEVEL)
    include(cmake/Packages.cmake)
endif()
