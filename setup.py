"""The compiled part of the core; everything else about the package stands in pyproject.toml."""

import os
import shlex
import subprocess
import sys
import sysconfig
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WHERE = "app/robots/_native"
NEEDED = f"{WHERE} takes a C compiler and the headers of Python to build (Debian: gcc, libc6-dev, python3-dev)"


class CompileCore(build_ext):
    """build_ext that makes C of Cython when it compiles and not before, so that an sdist is of Cython."""

    def run(self) -> None:
        """Compile what is older than its sources; SystemExit in one sentence where that cannot be done here."""
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
        of_name = {extension.name: extension.sources for extension in written}
        for extension in self.extensions:
            extension.sources = of_name[extension.name]
        super().run()


def what_is_missing() -> str | None:
    """What keeps this machine from compiling for this Python, None for nothing; not known for a compiler without CC."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    if not compiler:
        return None
    headers = sorted({sysconfig.get_path(name) for name in ("include", "platinclude")})
    included = [part for path in headers for part in ("-I", path)]
    try:
        tried = subprocess.run(  # noqa: S603 - the compiler that this Python names
            [*compiler, *included, "-E", "-"], input="#include <Python.h>\n", capture_output=True, text=True
        )
    except OSError:
        return f"there is no {compiler[0]}."
    if tried.returncode == 0:
        return None
    if not any(Path(path, "Python.h").exists() for path in headers):
        return f"there is no {headers[0]}/Python.h."
    reasons = [line for line in tried.stderr.splitlines() if "error" in line] or tried.stderr.splitlines()[:1]
    return f"{compiler[0]} says {' '.join(reasons[:1])!r}."


# Every module by itself, so that what one needs of another is an import like any other. No processor is named: what is
# built runs on all of its kind.
modules = [
    Extension(
        path.removesuffix(".pyx").replace("/", "."),
        [path],
        depends=["setup.py", *sorted(glob(f"{WHERE}/*.pxd") + glob(f"{WHERE}/*.h"))],  # noqa: PTH207 - paths as text
        include_dirs=[WHERE],
        # Cython compares signed numbers with sizes.
        extra_compile_args=["-O2", "-Wno-sign-compare"],
    )
    for path in sorted(glob(f"{WHERE}/*.pyx"))  # noqa: PTH207
]

setup(ext_modules=modules, cmdclass={"build_ext": CompileCore})
