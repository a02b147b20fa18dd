"""A library of this machine as a package of Conan, with the names that Conan's own recipes give its targets."""
from conan import ConanFile

# package -> file of CMake, target, library, component of Conan
KNOWN = {
    "boost": ("Boost", "Boost::headers", None, "headers"),
    "fmt": ("fmt", "fmt::fmt", "fmt", "fmt"),
    "hiredis": ("hiredis", "hiredis::hiredis", "hiredis", "hiredis"),
    "openssl": ("OpenSSL", "OpenSSL::SSL", "ssl", "ssl"),
}


class SystemConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    options = {"header_only": [True, False]}
    default_options = {"header_only": False}

    def package_info(self):
        file, target, library, component = KNOWN[self.name]
        self.cpp_info.set_property("cmake_file_name", file)
        parts = [(component, target, library)]
        if self.name == "openssl":
            parts.append(("crypto", "OpenSSL::Crypto", "crypto"))
        for name, cmake_target, linked in parts:
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", cmake_target)
            part.includedirs = part.libdirs = part.bindirs = []
            part.system_libs = [linked] if linked else []
