"""`sh deploy/image/pin.sh`: third-party images are pinned by digest in all files, or no file changes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = (
    "Dockerfile",
    "deploy/compose/compose.yaml",
    "deploy/helm/robots-decisions/values.yaml",
    "deploy/redis/valkey.yaml",
)
SKOPEO = """#!/bin/sh
case "$*" in
    *debian:*) echo "$DEBIAN" ;;
    *valkey/valkey:*) echo "sha256:{1}" ;;
    *prom/prometheus:*) echo "sha256:{2}" ;;
esac
""".replace("{1}", "b" * 64).replace("{2}", "c" * 64)


def test_the_image_may_read_every_file_that_it_copies() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
        for word in line.split()
        if "$" not in word
    }
    assert {"locks/build.txt", "locks/service.txt", "core", "app"} <= copied
    admitted = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == each or path.startswith(f"{each}/") for each in admitted), path


def test_the_image_is_for_any_processor() -> None:
    for file in ("Dockerfile", "deploy/image/system.sh", "deploy/image/base.sh"):
        assert re.findall(r"x86|amd64|i386|aarch64|arm64", (ROOT / file).read_text()) == [], file


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files without pins."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text()
        (tmp_path / name).write_text("\n".join(line.partition("@sha256:")[0] for line in text.split("\n")))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "skopeo").write_text(SKOPEO)
    (tmp_path / "bin" / "skopeo").chmod(0o700)
    return tmp_path


def pin(tree: Path, *arguments: str, debian: str = "sha256:" + "a" * 64) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{tree / 'bin'}:{os.environ['PATH']}", "DEBIAN": debian}
    command = [shutil.which("sh") or "sh", str(ROOT / "deploy" / "image" / "pin.sh"), *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=60)


def images(tree: Path) -> set[str]:
    lines = [line.strip() for name in FILES for line in (tree / name).read_text().splitlines()]
    found = {line.partition("image: ")[2] for line in lines if line.startswith("image: ")} - {"robots-decisions"}
    return found | {line.partition("=")[2] for line in lines if line.startswith("ARG BASE=")}


def test_pin_check_names_unpinned_images(tree: Path) -> None:
    named = images(tree)
    assert len(named) == 3
    assert set(pin(tree, "--check").stdout.split()) == named
    assert pin(tree, "--check").returncode == 1
    assert pin(tree).returncode == 0
    assert {image.partition("@sha256:")[0] for image in images(tree)} == named
    assert {image[-64:] for image in images(tree)} == {"a" * 64, "b" * 64, "c" * 64}
    assert (pin(tree, "--check").returncode, pin(tree, "--check").stdout) == (0, "")


def test_pin_updates_digests(tree: Path) -> None:
    pin(tree)
    pin(tree, debian="sha256:" + "d" * 64)
    assert {image[-64:] for image in images(tree)} == {"d" * 64, "b" * 64, "c" * 64}


@pytest.mark.parametrize("answer", ["", "latest", "sha256:short", "sha256:" + "A" * 64])
def test_invalid_digest_changes_no_file(tree: Path, answer: str) -> None:
    before = {name: (tree / name).read_text() for name in FILES}
    assert pin(tree, debian=answer).returncode != 0
    assert {name: (tree / name).read_text() for name in FILES} == before
