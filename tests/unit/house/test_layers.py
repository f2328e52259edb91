"""The rule about imports names layers one by one, so each adapter stands in it: one that does not may import all."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_each_adapter_stands_in_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    named = {name.strip() for layer in layers for name in layer.split("|")}
    there = [path for path in (ROOT / "adapters").iterdir() if path.is_dir() or path.suffix == ".py"]
    assert {f"adapters.{path.stem}" for path in there if not path.stem.startswith("__")} <= named
