"""The dashboard and the alert rules name metrics that there are, and the document has all of both."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.ipam.metrics import KNOWN, OF_BLOCK
from entrypoints.call_metrics import CALLS, DURATION, LABELS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "manifests/monitoring"
OTHERS = {"node_textfile_scrape_error": {"instance"}}  # node exporter's own
OF_CALLS = {*LABELS, "instance"}
LABELLED: dict[str, set[str]] = {
    CALLS: OF_CALLS,
    **{f"{DURATION}_{part}": OF_CALLS | {"le"} for part in ("bucket", "sum", "count")},
    **{name: {*labels, "instance"} for name, labels, _ in KNOWN},
    **OTHERS,
}
_NAME = re.compile(r"\b(?:tortie_|ipam_|node_textfile)\w+")
_CHOSEN = re.compile(r"(\w+)\{([^}]*)\}")
_GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def dashboard_queries() -> list[str]:
    variables = json.loads((FOLDER / "dashboard.json").read_text())["templating"]["list"]
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    return asked + [one["definition"] for one in variables if "definition" in one]


@pytest.mark.parametrize("query", [*dashboard_queries(), *[rule["expr"] for rule in rules()]])
def test_a_query_names_metrics_and_labels_that_there_are(query: str) -> None:
    names = set(_NAME.findall(query))
    assert names
    assert names <= set(LABELLED)
    for name, matchers in _CHOSEN.findall(query):
        assert set(re.findall(r"(\w+) *[=!]", matchers)) <= LABELLED[name]
    grouped = {label.strip() for labels in _GROUPED.findall(query) for label in labels.split(",")}
    assert grouped <= set.union(*[LABELLED[name] for name in names])


def test_each_metric_is_in_the_dashboard() -> None:
    """But for those of single blocks, which are only there if asked for."""
    shown = set(_NAME.findall(" ".join(dashboard_queries())))
    assert {CALLS, f"{DURATION}_bucket", *[name for name, _, _ in KNOWN if name != OF_BLOCK]} == shown


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_an_alert_says_what_it_means_and_what_to_do() -> None:
    document = (ROOT / "docs/metrics.md").read_text()
    for rule in rules():
        assert f"| `{rule['alert']}` | " in document
        assert {*rule["annotations"]} == {"summary", "description"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_the_document_has_each_metric() -> None:
    document = (ROOT / "docs/metrics.md").read_text()
    for name in (CALLS, DURATION, *[name for name, _, _ in KNOWN]):
        assert f"`{name}`" in document


def test_the_operators_object_has_the_same_rules() -> None:
    plain = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    wrapped = yaml.safe_load((FOLDER / "prometheus-rule.yaml").read_text())
    assert wrapped["spec"] == plain


def test_promtool_finds_the_alerts_to_fire_when_they_should() -> None:
    """Which is also its linter. It is in Debian's package `prometheus`."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("NOT CHECKED BY PROMTOOL: there is none on PATH; Debian has it in the package prometheus")
    asked = ([promtool, "check", "rules", "manifests/monitoring/rules.yaml"],)
    for words in (*asked, [promtool, "test", "rules", "tests/monitoring/alerts.yaml"]):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    fired = {
        test["alertname"]
        for world in yaml.safe_load((ROOT / "tests/monitoring/alerts.yaml").read_text())["tests"]
        for test in world["alert_rule_test"]
        if test["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in rules()}
