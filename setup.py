"""The compiled part of the core; everything else about the package stands in pyproject.toml."""

from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

# Every module by itself, so that what one needs of another is an import like any other.
modules = [
    Extension(path.removesuffix(".pyx").replace("/", "."), [path], extra_compile_args=["-O3"])
    for path in sorted(glob("app/robots/compiled/*.pyx"))  # noqa: PTH207 - setuptools wants paths as text
]

setup(
    ext_modules=cythonize(modules, build_dir="build/cython", language_level=3, compiler_directives={"cdivision": True})
)
