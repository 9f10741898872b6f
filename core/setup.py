"""Build the compiled modules for the stable ABI of Python 3.11, so that one wheel serves every later Python, too."""

import os
import shlex
import subprocess
import sys
import sysconfig
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

WHERE = "robots_core/robots/_native"

NEEDED = f"building {WHERE} needs a C compiler and Python's headers (Debian: gcc, libc6-dev, python3-dev)"


class CompileCore(build_ext):
    """build_ext that runs Cython only when it compiles, so that a source distribution contains the Cython sources."""

    def run(self) -> None:
        """Compile modules older than their sources. Raises SystemExit if this machine cannot."""
        missing = what_is_missing()
        if missing is not None:
            sys.exit(f"{NEEDED}: {missing}")
        written = cythonize(
            self.extensions,
            build_dir="build/cython",
            force=self.force,
            quiet=not self.verbose,
            language_level=3,
            compiler_directives={"cdivision": True},
        )
        sources = {extension.name: extension.sources for extension in written}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        super().run()


def what_is_missing() -> str | None:
    """Why this machine cannot compile for this Python; None if it can, or if the compiler is not known."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    if not compiler:
        return None
    headers = sorted({sysconfig.get_path(name) for name in ("include", "platinclude")})
    included = [part for path in headers for part in ("-I", path)]
    try:
        check = subprocess.run(  # noqa: S603 - the compiler of this Python, or CC
            [*compiler, *included, "-E", "-"], input="#include <Python.h>\n", capture_output=True, text=True
        )
    except OSError:
        return f"{compiler[0]} is not installed."
    if check.returncode == 0:
        return None
    if not any(Path(path, "Python.h").exists() for path in headers):
        return f"{headers[0]}/Python.h is missing."
    reasons = [line for line in check.stderr.splitlines() if "error" in line] or check.stderr.splitlines()[:1]
    return f"{compiler[0]} says {' '.join(reasons[:1])!r}."


# Each module is an extension of its own, so modules use each other by ordinary imports. No processor model is set: the
# result runs on every processor of the architecture.
modules = [
    Extension(
        path.removesuffix(".pyx").replace("/", "."),
        [path],
        depends=["setup.py", *sorted(glob(f"{WHERE}/*.pxd") + glob(f"{WHERE}/*.h"))],  # noqa: PTH207 - paths as text
        include_dirs=[WHERE],
        py_limited_api=True,
        define_macros=[("Py_LIMITED_API", "0x030b0000")],
        # Cython compares signed numbers with sizes, and a module may use a part of a header only. A function outside
        # the stable ABI is not declared, and would be called as one that returns an int: the module would crash.
        extra_compile_args=[
            *("-O2", "-Wno-sign-compare", "-Wno-unused-function"),
            "-Werror=implicit-function-declaration",
        ],
    )
    for path in sorted(glob(f"{WHERE}/*.pyx"))  # noqa: PTH207
]

setup(
    packages=find_packages(include=["robots_core", "robots_core.*"]),
    package_dir={"": "."},  # so that an editable install is one line in a .pth file, which type checkers read, too
    package_data={
        "robots_core": ["py.typed"],
        "robots_core.robots": ["*.toml"],
        "robots_core.robots._native": ["*.pyi"],
    },
    ext_modules=modules,
    cmdclass={"build_ext": CompileCore},
    options={"bdist_wheel": {"py_limited_api": "cp311"}, "build_ext": {"parallel": True}},
)
