"""Build the compiled modules for the stable ABI of Python 3.11, so that one wheel serves every later Python, too."""

from glob import glob

from setuptools import Extension, find_packages, setup

WHERE = "robots_core/robots/_native"


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
    package_data={
        "robots_core": ["py.typed"],
        "robots_core.robots": ["*.toml"],
        "robots_core.robots._native": ["*.pyi"],
    },
    ext_modules=modules,
    options={
        "bdist_wheel": {"py_limited_api": "cp311"},
        # Cython runs when modules are compiled, and not for a source distribution.
        "build_ext": {"cython_c_in_temp": True, "cython_directives": {"cdivision": True, "language_level": 3}},
    },
)
