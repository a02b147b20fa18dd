message(FATAL_ERROR "Maven did not build the driver of the interop tests with Redisson ${VERSION}; its own words are above. "
    "The first time it needs a Maven repository (Maven Central, or the mirror in ~/.m2/settings.xml). "
    "To build without the interop tests: cmake -DREDISLOCK_MAVEN=OFF")
