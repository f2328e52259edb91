"""Names of others in places that have room for so much only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.bounded_name import bounded_name
from domain.bridge import marks
from domain.bridge.conf import AttachmentId


def size(name: str) -> int:
    return len(name.encode("utf-8", "surrogateescape"))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=120), st.integers(40, 130))
def test_a_name_fits_and_stays_as_it_is_if_it_did(name: str, longest: int) -> None:
    bounded = bounded_name(name, longest)
    assert size(bounded) <= longest
    assert (bounded == name) == (size(name) <= longest)


def test_long_names_that_begin_alike_stay_apart() -> None:
    alike = ["c" * 300 + tail for tail in ("", "a", "b")]
    assert len({bounded_name(name, 255) for name in alike}) == 3


def test_every_mark_of_a_long_container_fits_and_is_its_own() -> None:
    """The kernel's, nftables' and iptables' limits."""
    one, other = [AttachmentId("c" * 5000 + tail, "eth0") for tail in "ab"]
    for mark, longest in (
        (lambda owner: marks.alias("net1", owner), 255),
        (marks.guard_chain, 251),
        (marks.guard_comment, 128),
        (lambda owner: marks.rule_comment("net1", owner), 128),
        (lambda owner: marks.chain_comment("net1", owner.container_id), 255),
        (lambda owner: marks.chain("net1", owner.container_id), 28),
    ):
        assert size(mark(one)) <= longest
        assert mark(one) != mark(other)
    assert marks.attachment_of("net1", marks.alias("net1", one)) is None
