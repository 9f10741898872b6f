"""Lay out the wheel of the server; pyproject.toml has everything else about the package."""

import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py

SERVER = "robots_decisions_server"
IMPORT_PATH = f"{SERVER}._import_path"
"""Where a wheel has `app`, whose name a crawler's own package may have (docs/contributing.md)."""


class CopyApp(build_py):
    """build_py that adds the OpenAPI document, and which commit a wheel is made of."""

    def run(self) -> None:
        """Copy the modules, and write REVISION beside those of `app`."""
        super().run()
        import_path = Path(self.build_lib, *IMPORT_PATH.split("."))
        shutil.copy("openapi.json", import_path)
        revision = runpy.run_path("app/observability/revision.py")["REVISION"]
        Path(import_path, "app", "REVISION").write_text(f"{revision}\n")


class BuildApart(build):
    """build in an empty directory, or a wheel would also contain what other builds left behind."""

    def finalize_options(self) -> None:
        """Choose and empty the directory."""
        self.build_base = "build/wheel"
        shutil.rmtree(self.build_base, ignore_errors=True)
        super().finalize_options()


setup(
    packages=[SERVER, *(f"{IMPORT_PATH}.{name}" for name in find_packages(include=["app", "app.*"]))],
    package_dir={SERVER: f"deploy/wheel/{SERVER}", f"{IMPORT_PATH}.app": "app"},
    package_data={f"{IMPORT_PATH}.app": ["cache/dictionaries/*.dict", "*/*.lua", "web/*"]},
    cmdclass={"build": BuildApart, "build_py": CopyApp},
)
