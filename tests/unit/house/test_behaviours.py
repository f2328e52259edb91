"""docs/behaviours.md says which test shows which behaviour, as the tests are now."""

from __future__ import annotations

import pytest

from house.behaviours import INDEX, ROOT, citations, cited_in, index
from house.reach import PACKAGES


def test_the_index_is_up_to_date():
    assert index() == INDEX.read_text(), "make behaviours"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_product_cites_none(package):
    texts = {path: path.read_text() for path in (ROOT / package).rglob("*.py") if not path.name.endswith("_pb2.py")}
    citing = {str(path): cited for path, text in texts.items() if (cited := list(cited_in(text)))}
    assert not citing, "say what it is; the ids are the tests'"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Conformance CNI-001 to 003, case K02.", ["CNI-001", "K02"]),
        ("def test_cni_010_012_add_fails(", ["CNI-010", "CNI-012"]),
        ("def test_bt_33_p06_dual_stack(", ["BT-33", "P06"]),
        ("G7, G26", ["G7", "G26"]),
        ("AF11, C1, 10-20-0-0-26, K8S-001", ["K8S-001"]),
    ],
)
def test_ids_in_prose_and_in_names(text, ids):
    assert list(cited_in(text)) == ids


def test_who_cites(tmp_path):
    (tmp_path / "test_a.py").write_text(
        '"""What comes and goes (L01)."""\n\n'
        "# --- K02: the server is away ---\n\n"
        'class TestB:\n    def test_kv_001_it_stays(self):\n        """D09: as recorded."""\n'
    )
    assert sorted(citations(tmp_path / "test_a.py", tmp_path)) == [
        ("D09", 1, "test_a.py::TestB::test_kv_001_it_stays", "it stays"),
        ("K02", 2, "test_a.py", "What comes and goes (L01)."),
        ("KV-001", 0, "test_a.py::TestB::test_kv_001_it_stays", "it stays"),
        ("L01", 2, "test_a.py", "What comes and goes (L01)."),
    ]
