# What `cpack` packs: Debian packages, one for each component. packaging/deb builds the library as Debian wants it first.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The redislock authors")
set(CPACK_PACKAGE_CONTACT "The redislock authors <redislock@users.noreply.invalid>" CACHE STRING
    "Maintainer of the packages that cpack makes: name and address")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL development)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/debian.cmake")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed locks in Redis, for C++20 and the shell")
set(redislock_about
"A lock excludes all processes that use its name, on whatever machine they
run. It is renewed while it is held, and its holder is notified when it is
lost. The keys in Redis are those of Redisson: C++ and Java services exclude
each other.
")

# A program needs the libraries with which this one was compiled, in the versions of the same interface: with another
# Boost it does not compile, with another fmt it does not link, with another hiredis it does not connect.
function(redislock_debian_dependency result package version)
    string(REGEX MATCH "^[0-9]+" major "${version}")
    math(EXPR next "${major} + 1")
    set(${result} "${package} (>= ${version}), ${package} (<< ${next})" PARENT_SCOPE)
endfunction()
redislock_debian_dependency(hiredis libhiredis-dev "${Hiredis_VERSION}")
redislock_debian_dependency(fmt libfmt-dev "${fmt_VERSION}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libredislock-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libboost${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev, ${hiredis}, ${fmt}")
if(REDISLOCK_WITH_TLS)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libssl-dev (>= 3.0)")
endif()
if(REDISLOCK_PROMETHEUS)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", prometheus-cpp-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${redislock_about}
This package has the headers, the library, its CMake package, and its
pkg-config file.")

get_target_property(type redislock TYPE)
if(type STREQUAL "SHARED_LIBRARY")
    list(APPEND CPACK_COMPONENTS_ALL runtime)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libredislock${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
    set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${redislock_about}
This package has the shared library.")
    set(runtime "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
    string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime}, ")
    set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "${runtime}")
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
endif()

if(REDISLOCK_BUILD_TOOL)
    list(APPEND CPACK_COMPONENTS_ALL tool)
    set(CPACK_DEBIAN_TOOL_PACKAGE_NAME redislock-tool)
    set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION utils)
    set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_TOOL_DESCRIPTION "${redislock_about}
This package has the command-line tool. It runs a command while it holds a
lock, shows who holds which locks and who waits for them, frees locks, and
checks whether a server is fit for locks.")
endif()
include(CPack)
