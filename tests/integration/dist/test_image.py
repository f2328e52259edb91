"""The container image, built and run by a real engine with the privileges that the manifests give.

Skipped, with the reason, where no engine can be started.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from entrypoints.version import VERSION
from integration.dist.conftest import ARCHITECTURE, ROOT
from services.container_engine import ContainerEngine, engine_or_skip

TAG = f"tortie:{VERSION}"
CONFINED = ("--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")


@pytest.fixture(scope="module")
def engine(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEngine]:
    """With the image in it, and one plugin beside ours."""
    folder = tmp_path_factory.mktemp("engine")
    context, others = folder / "context", folder / "others"
    others.mkdir()
    for name in ("portmap", "calico"):
        (others / name).write_text(f"#!/bin/sh\necho the other {name}\n")
    root = context / "build" / "image" / f"linux-{ARCHITECTURE}"
    stage = [sys.executable, ROOT / "packaging" / "release" / "image_root.py", executable, root, "--plugins", others]
    subprocess.run(stage, check=True)
    with engine_or_skip("the image") as engine:
        given = [f"--build-arg=TARGETARCH={ARCHITECTURE}", f"--build-arg=VERSION={VERSION}"]
        engine.docker("build", *given, "--tag", TAG, "--file", ROOT / "Dockerfile", context)
        yield engine


@pytest.mark.parametrize("name", ["calico", "calico-ipam", "my-custom-cni"])
def test_it_answers_as_each_program(engine: ContainerEngine, name: str) -> None:
    words = ["--env=CNI_COMMAND=VERSION", f"--entrypoint=/usr/bin/{name}", TAG]
    done = engine.docker("run", "--rm", *CONFINED, *words, "")
    assert "1.0.0" in json.loads(done.stdout)["supportedVersions"]


def test_by_itself_it_says_what_it_is(engine: ContainerEngine) -> None:
    assert engine.docker("run", "--rm", *CONFINED, TAG).stdout.startswith("Calico's CNI plugins")
    assert VERSION in engine.docker("run", "--rm", *CONFINED, TAG, "version").stdout


def test_it_holds_the_programs_the_terms_and_the_other_plugins_only(engine: ContainerEngine, tmp_path: Path) -> None:
    made = engine.docker("create", TAG).stdout.strip()
    try:
        engine.docker("export", "--output", tmp_path / "image.tar", made)
    finally:
        engine.docker("rm", made)
    listed = subprocess.run(
        ["tar", "-tf", tmp_path / "image.tar"], text=True, capture_output=True, check=True
    ).stdout.splitlines()
    of_the_engine = ("dev/", "proc/", "sys/", "etc/", ".dockerenv")
    files = {name for name in listed if not name.endswith("/") and not name.startswith(of_the_engine)}
    documents = {name for name in files if name.startswith("usr/share/doc/tortie/")}
    programs = {f"usr/bin/{name}" for name in ("calico", "calico-ipam", "my-custom-cni", "tortie")}
    assert files - documents == {*programs, "opt/cni/bin/portmap"}
    assert {"usr/share/doc/tortie/LICENSE", "usr/share/doc/tortie/LICENSES/CPython"} <= documents


def test_it_runs_as_nobody_unless_it_is_told(engine: ContainerEngine) -> None:
    config = json.loads(engine.docker("image", "inspect", TAG).stdout)[0]
    assert config["Config"]["User"] == "65532:65532"
    assert config["Architecture"] == ARCHITECTURE
    assert config["Config"]["Labels"]["org.opencontainers.image.version"] == VERSION


def test_the_machine_is_as_it_was() -> None:
    """By the engine that these tests start: no bridge, no mount, no data."""
    with engine_or_skip("the image") as engine:
        links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout)
        assert "docker0" not in {link["ifname"] for link in links}
        assert str(engine.folder) in Path("/proc/mounts").read_text()
    assert str(engine.folder) not in Path("/proc/mounts").read_text()
    assert not engine.folder.exists()
