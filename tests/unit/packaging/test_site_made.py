"""What `make site` and `make keys` make of the documents: rows, pages, and links that lead to the same things."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SITE = str(ROOT / "packaging" / "site")

TABLE = """# Keys

## One plugin

| key | default | what it does |
|---|---|---|
| `a` | 1 | counts |
| `gone` | 2 | was there |

## Other

| what | what to do |
|---|---|
| it hangs \\| stops | look |
"""


@pytest.fixture(scope="module")
def site():
    sys.path.insert(0, SITE)
    try:
        import chapters
        import keys
        import layout
        import leaves
        import tables

        modules = (chapters, keys, layout, leaves, tables)
        yield {module.__name__: module for module in modules}
    finally:
        sys.path.remove(SITE)


def test_rows_know_their_headings_and_bars(site):
    first, _, last = site["tables"].rows(TABLE)
    assert (first.line, first.chapter, first.cell("default"), first.cell("no such")) == (6, "One plugin", "1", "")
    assert last.cells == ("it hangs \\| stops", "look")


def test_a_sheet_is_written_by_what_the_parser_knows(site):
    facts = {"One plugin": {"a": ("3", ""), "new": ("", "")}}
    written = site["keys"].Sheet("x.md", ("key", "default", "what it does"), facts).written(TABLE)
    assert "| `a` | 3 | counts |\n| `new` | – | TO BE WRITTEN |\n\n## Other" in written
    assert "gone" not in written
    assert "it hangs" in written


def test_what_the_parser_knows_of_keys(site):
    found = {name: {key.path: key for key in keys} for name, keys in site["keys"].of_each_plugin().items()}
    calico, bridge, _ = found.values()
    assert calico["ipam.assign_ipv4"].type == "string or boolean"
    assert calico["vxlan_vni"].type == "integer from 0 on"
    assert calico["nodename_file_optional"].default == "`false`"
    assert calico["endpoint_status_dir"].default == "`/var/run/calico/endpoint-status`"
    assert bridge["isGateway"].default == "`true`, as `bridge` `false`"
    assert bridge["vlanTrunk"].type == "list of objects"
    assert "cni.projectcalico.org/ipAddrs" in site["keys"].of_pods()


def test_every_key_has_a_type(site):
    untyped = [key.path for keys in site["keys"].of_each_plugin().values() for key in keys if not key.type]
    assert untyped == []


@pytest.mark.parametrize(
    ("link", "led"),
    [
        ("install.md#back", "install.md#back"),
        ("../README.md", "readme.md"),
        ("decisions/", "decisions/index.md"),
        ("../manifests/", "manifests.md"),
        ("../manifests/monitoring", "manifests/monitoring.md"),
        ("../manifests/fresh.yaml", "files/manifests/fresh.yaml"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("#here", "#here"),
    ],
)
def test_links_lead_to_the_same_on_the_site(site, tmp_path, link, led):
    layout = site["layout"].Layout(tmp_path)
    assert layout.linked(f"[x]({link})", "docs/operating.md", "operating.md") == f"[x]({led})"
    assert not led.startswith("files/") or (tmp_path / led).is_file()


def test_a_page_made_of_a_row_has_links_of_its_own_place(site, tmp_path):
    linked = site["layout"].Layout(tmp_path).linked("[x](#back) [y](/docs/glossary.md)", "docs/install.md", "a/b.md")
    assert linked == "[x](../install.md#back) [y](../glossary.md)"


def test_each_document_is_in_one_chapter(site):
    named = [name for names in site["chapters"].chapters().values() for name in names]
    assert len(named) == len(set(named))
    assert set(site["chapters"].documents()) - set(named) == {site["chapters"].FIRST}


def test_a_page_for_each_symptom_key_and_annotation(site):
    pages = {leaf.page for leaf in site["leaves"].leaves()}
    assert {
        "symptoms/no-configured-calico-pools-for-node.md",
        "keys/calico/ipam-assign-ipv4.md",
        "annotations/cni-projectcalico-org-ip-addrs.md",
    } <= pages


def test_an_example_has_the_key_in_its_place(site):
    example = site["leaves"]._example
    assert example("a.b", {"a": "object", "a.b": "boolean"}) == {"a": {"b": True}}
    assert example("a/b.c", {"a/b": "list of objects", "a/b.c": "string"}) == {"a/b": [{"c": "…"}]}
