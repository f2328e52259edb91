"""Pictures of pools and blocks, and the screen they are drawn on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.utilisation import BlockUse, PoolUse, Space
from entrypoints.tortie.answer import PIPED_WIDTH, Screen, aligned, folded
from entrypoints.tortie.ipam.bars import LEGEND, SIGNS, block_bar, coloured, pool_bar

CODE = {sign: number for number, sign in SIGNS.items()}


def block(cidr, picture):
    states = bytes(CODE[sign] for sign in picture)
    return BlockUse(Cidr.parse(cidr), "host:n", Space(len(states)), states)


def pool(cidr, *blocks, reserved=()):
    return PoolUse("p", Cidr.parse(cidr), True, 4, Space(0), blocks, tuple(Cidr.parse(one) for one in reserved))


def test_a_block_with_room_is_drawn_address_by_address():
    assert block_bar(block("10.0.0.0/29", "x##b~..."), 8) == "x##b~..."
    assert block_bar(block("10.0.0.0/29", "x##b~..."), 64) == "x##b~..."


@pytest.mark.parametrize(
    ("picture", "bar"),
    [("########", "#"), ("#######.", "+"), ("bbb#bbbb", "b"), ("~~~~....", "."), ("xxxxxxxx", "x"), ("........", ".")],
)
def test_a_bucket_is_full_only_if_nothing_in_it_is_free(picture, bar):
    assert block_bar(block("10.0.0.0/29", picture), 1) == bar


def test_a_pool_shows_its_blocks_where_they_are():
    used, empty = block("10.0.0.0/30", "####"), block("10.0.0.8/30", "....")
    assert pool_bar(pool("10.0.0.0/28", used, empty), 16) == "####    ....    "
    assert pool_bar(pool("10.0.0.0/28", used, empty), 4) == "# . "
    assert pool_bar(pool("10.0.0.0/28", used, empty), 2) == "+."
    assert pool_bar(pool("10.0.0.0/28", used), 64) == "####" + " " * 12
    assert pool_bar(pool("10.0.0.0/28", used, reserved=["10.0.0.12/30"]), 4) == "#  x"
    assert pool_bar(pool("fd00::/48", block("fd00::/126", "#...")), 8) == "+       "


@given(st.text(alphabet=[*SIGNS.values(), "+", " "], max_size=80))
def test_colours_change_nothing_that_is_read(bar):
    assert re.sub(r"\x1b\[\d*m", "", coloured(bar)) == bar


def test_runs_share_a_colour():
    assert coloured("##  ..") == "\x1b[31m##\x1b[0m  \x1b[32m..\x1b[0m"


def test_the_legend_explains_every_sign():
    assert all(f"{sign} " in LEGEND for sign in [*SIGNS.values(), "+"])


@pytest.mark.parametrize(
    ("columns", "width"), [("80", 80), ("", PIPED_WIDTH), ("0", PIPED_WIDTH), ("wide", PIPED_WIDTH), ("²", PIPED_WIDTH)]
)
def test_what_is_piped_has_no_colour_and_the_width_asked_for(columns, width):
    assert Screen.of({"COLUMNS": columns, "TERM": "xterm"}) == Screen(width, colour=False)


def test_columns_line_up():
    assert aligned([["A", "BB"], ["aaa", "1"]], numbers=[1]) == ["A    BB", "aaa   1"]
    assert aligned([]) == []


@given(st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=1, max_size=12), st.integers(12, 60))
def test_folding_keeps_every_word_and_the_width(words, width):
    lines = folded(", ".join(words), width, "  ")
    assert ", ".join(line.removeprefix("  ") for line in lines).split(", ") == words
    assert all(len(line) <= width for line in lines)
