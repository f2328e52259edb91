"""The manifests in version control are those that `make manifests` writes, and say what the images and programs are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from entrypoints.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "manifests"


@pytest.fixture
def made() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import manifests

        yield manifests
    finally:
        sys.path.remove(str(ROOT / "packaging"))


def test_each_file_is_as_its_parts_say(made: Any) -> None:
    stale = [name for name, text in made.files().items() if (FOLDER / name).read_text() != text]
    assert stale == [], "run `make manifests`"


def test_no_file_is_left_of_another_time(made: Any) -> None:
    assert {path.name for path in FOLDER.glob("*.yaml")} == {*made.files(), "rbac.yaml", "rbac-windows.yaml"}


def test_a_placeholder_that_nobody_fills_is_refused(made: Any) -> None:
    with pytest.raises(SystemExit, match="@LEFT@"):
        made.manifest(made.WAYS["fresh.yaml"]._replace(net="/@LEFT@"))


@pytest.mark.parametrize("name", ["fresh.yaml", "beside-calico.yaml", "in-place-of-calico.yaml", "uninstall.yaml"])
def test_images_are_of_this_version(name: str) -> None:
    containers = [
        container
        for one in yaml.safe_load_all((FOLDER / name).read_text())
        for spec in [one.get("spec", {}).get("template", {}).get("spec", {})]
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ()))
    ]
    assert {container["image"] for container in containers} == {f"tortie:{VERSION}"}
    assert (FOLDER / name).read_text().count(" image: ") == len(containers)


def test_the_sample_is_a_kubeconfig_that_the_plugins_read() -> None:
    sample = yaml.safe_load((FOLDER / "kubeconfig.sample").read_text())
    names = {kind: [one["name"] for one in sample[kind]] for kind in ("clusters", "users", "contexts")}
    (context,) = sample["contexts"]
    assert sample["current-context"] == context["name"]
    assert [context["context"]["cluster"]] == names["clusters"]
    assert [context["context"]["user"]] == names["users"]
