"""Build the compiled part of the core; pyproject.toml has everything else about the package."""

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

WHERE = "robots_core/robots/_native"
SERVER = "robots_decisions_server"
IMPORT_PATH = f"{SERVER}._import_path"
"""Where a wheel has `app`, whose name a crawler's own package may have, and `robots_core` (docs/contributing.md)."""

NEEDED = f"building {WHERE} needs a C compiler and Python's headers (Debian: gcc, libc6-dev, python3-dev)"


class CompileCore(build_ext):
    """build_ext that runs Cython only when it compiles, so that an sdist contains the Cython sources."""

    def run(self) -> None:
        """Compile modules older than their sources. Raises SystemExit with one sentence if this machine cannot."""
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

    def get_ext_fullpath(self, ext_name: str) -> str:
        """The path to build a module at: in a wheel, in the directory that has the package `robots_core`."""
        path = str(super().get_ext_fullpath(ext_name))
        if not is_wheel(self.distribution):
            return path
        return str(Path(self.build_lib, *IMPORT_PATH.split("."), Path(path).relative_to(self.build_lib)))


class NameRevision(build_py):
    """build_py that writes down which commit a wheel is made of."""

    def run(self) -> None:
        """Copy the modules, and write REVISION beside those of `app`."""
        super().run()
        app = Path(self.build_lib, *IMPORT_PATH.split("."), "app")
        if app.is_dir():
            (app / "REVISION").write_text(runpy.run_path("app/observability/revision.py")["REVISION"] + "\n")


class BuildApart(build):
    """build that gives a wheel a directory of its own, or it would also contain what other builds left behind."""

    def finalize_options(self) -> None:
        """Choose and empty the directory."""
        if is_wheel(self.distribution):
            self.build_base = "build/wheel"
            shutil.rmtree(self.build_base, ignore_errors=True)
        super().finalize_options()


def is_wheel(distribution: Distribution) -> bool:
    """Whether a wheel is being built."""
    return "bdist_wheel" in distribution.commands


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
        # Cython compares signed numbers with sizes, and a module may use a part of a header only.
        extra_compile_args=["-O2", "-Wno-sign-compare", "-Wno-unused-function"],
    )
    for path in sorted(glob(f"{WHERE}/*.pyx"))  # noqa: PTH207
]

setup(
    packages=[
        SERVER,
        *(f"{IMPORT_PATH}.{name}" for name in find_packages(include=["app", "app.*", "robots_core", "robots_core.*"])),
    ],
    package_dir={
        SERVER: f"deploy/wheel/{SERVER}",
        f"{IMPORT_PATH}.app": "app",
        f"{IMPORT_PATH}.robots_core": "robots_core",
    },
    package_data={
        f"{IMPORT_PATH}.app": [
            "api/examples.json",
            "cache/dictionaries/*.dict",
            "*/*.lua",
            "web/*",
        ],
        f"{IMPORT_PATH}.robots_core": [
            "py.typed",
            "robots/agents.toml",
            "robots/compatibility.toml",
            "robots/_native/*.pyi",
        ],
    },
    ext_modules=modules,
    cmdclass={"build": BuildApart, "build_ext": CompileCore, "build_py": NameRevision},
)
