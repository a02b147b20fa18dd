# Finds hiredis 0.14 or newer: asks pkg-config first, then looks in the usual places.
#
#   hiredis::hiredis   what to link; a target of this name that exists already is used as it is
#   Hiredis_FOUND, Hiredis_VERSION
#
# hiredis' own CMake packages are not used: they define different names from release to release, and some define none.

if(TARGET hiredis::hiredis)
    set(Hiredis_TARGET hiredis::hiredis)
    set(_hiredis_required Hiredis_TARGET)
    get_target_property(_hiredis_folders hiredis::hiredis INTERFACE_INCLUDE_DIRECTORIES)
else()
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(PC_HIREDIS QUIET hiredis)
    endif()
    # hiredis.pc names the folder hiredis/ itself in some releases and its parent folder in others.
    find_path(Hiredis_INCLUDE_DIR hiredis/hiredis.h
        HINTS ${PC_HIREDIS_INCLUDEDIR} "${PC_HIREDIS_INCLUDEDIR}/.." ${PC_HIREDIS_INCLUDE_DIRS})
    find_library(Hiredis_LIBRARY hiredis HINTS ${PC_HIREDIS_LIBDIR} ${PC_HIREDIS_LIBRARY_DIRS})
    mark_as_advanced(Hiredis_INCLUDE_DIR Hiredis_LIBRARY)
    set(_hiredis_required Hiredis_LIBRARY Hiredis_INCLUDE_DIR)
    set(_hiredis_folders "${Hiredis_INCLUDE_DIR}")
endif()

find_file(_hiredis_header hiredis/hiredis.h PATHS ${_hiredis_folders} NO_CACHE NO_DEFAULT_PATH)
if(_hiredis_header)
    file(STRINGS "${_hiredis_header}" _hiredis_numbers REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX REPLACE "[^0-9;]" "" _hiredis_numbers "${_hiredis_numbers}")
    list(JOIN _hiredis_numbers "." Hiredis_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hiredis REQUIRED_VARS ${_hiredis_required} VERSION_VAR Hiredis_VERSION)

if(Hiredis_FOUND AND NOT TARGET hiredis::hiredis)
    add_library(hiredis::hiredis UNKNOWN IMPORTED)
    set_target_properties(hiredis::hiredis PROPERTIES
        IMPORTED_LOCATION "${Hiredis_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${Hiredis_INCLUDE_DIR}")
endif()
