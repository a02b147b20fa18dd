# Run by cpack before it packs: what Debian wants of each package, and `cmake --install` does not install.
file(GLOB components LIST_DIRECTORIES ON "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*")
foreach(component IN LISTS components)
    cmake_path(GET component FILENAME name)
    string(TOUPPER "${name}" name)
    set(package "${CPACK_DEBIAN_${name}_PACKAGE_NAME}")
    set(data "${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share")
    file(REMOVE_RECURSE "${data}/doc/redislock") # the licence, which is `copyright` here
    set(folder "${data}/doc/${package}")

    cmake_path(SET source NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/..")
    file(READ "${source}/LICENSE" licence)
    string(REGEX REPLACE "^MIT License\n\nCopyright \\(c\\) ([^\n]*)\n\n" "" licence "${licence}")
    set(holder "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "\n+$" "" licence "${licence}")
    string(REPLACE "\n" "\n " licence "${licence}")
    string(REPLACE "\n \n" "\n .\n" licence "${licence}")
    file(WRITE "${folder}/copyright"
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: redislock\n\nFiles: *\nCopyright: Copyright (c) ${holder}\nLicense: Expat\n ${licence}\n")

    string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)
    file(WRITE "${folder}/changelog.Debian"
        "redislock (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
        "  * Packed from the sources.\n\n"
        " -- ${CPACK_PACKAGE_CONTACT}  ${day}\n")

    if(EXISTS "${data}/zsh/site-functions") # Debian's zsh looks elsewhere
        file(RENAME "${data}/zsh/site-functions" "${data}/zsh/vendor-completions")
    endif()

    file(GLOB manuals "${data}/man/man*/*")
    execute_process(COMMAND gzip -9nf "${folder}/changelog.Debian" ${manuals} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
