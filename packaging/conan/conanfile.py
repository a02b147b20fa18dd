"""redislock for Conan 2: `conan create packaging/conan`."""
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class RedislockConan(ConanFile):
    name = "redislock"
    description = "Distributed locks in Redis, in the shapes of the C++ standard library"
    license = "MIT"
    topics = ("redis", "distributed-lock", "mutex", "semaphore", "asio")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_tls": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_tls": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, Path(self.recipe_folder, "../../CMakeLists.txt"))
        self.version = re.search(r"project\(redislock\s+VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        root = Path(self.recipe_folder, "../..").resolve()
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "lua/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        # The headers of Boost are part of the interface; one version of it compiles the library and its users.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True, options={"header_only": True})
        self.requires("fmt/[>=9 <12]", transitive_headers=True)
        self.requires("hiredis/[>=0.14 <2]")
        if self.options.with_tls:
            self.requires("openssl/[>=3 <4]")

    def package_id(self):
        self.info.requires["boost"].full_version_mode()

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("redislock runs on Linux only")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH", "TOOL"):
            toolchain.cache_variables[f"REDISLOCK_BUILD_{part}"] = False
        toolchain.cache_variables["REDISLOCK_WITH_TLS"] = bool(self.options.with_tls)
        toolchain.cache_variables["CMAKE_UNITY_BUILD"] = True
        toolchain.cache_variables["CMAKE_UNITY_BUILD_BATCH_SIZE"] = "8"
        toolchain.generate()
        dependencies = CMakeDeps(self)
        dependencies.set_property("hiredis", "cmake_file_name", "Hiredis")
        dependencies.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder, "licenses"))
        CMake(self).install()
        for folder in ("lib/cmake", "lib/pkgconfig", "share"): # Conan writes its own
            rmdir(self, Path(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.set_property("cmake_config_version_compat", "SameMinorVersion")
        self.cpp_info.libs = ["redislock"]
        self.cpp_info.system_libs = ["dl", "pthread"]
        self.cpp_info.requires = ["boost::headers", "fmt::fmt", "hiredis::hiredis"]
        if self.options.with_tls:
            self.cpp_info.requires += ["openssl::ssl", "openssl::crypto"]
