"""When a token expires, and when the next one is fetched."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.install.token import BadToken, RefreshPace, refresh_interval, token_expiry
from domain.moment import SECOND

DAY = 86_400.0


def token(claims: object) -> str:
    return ".".join(
        base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "RS256"}, claims, b"signature")
    )


class TestExpiry:
    def test_it_is_the_claim_in_whole_seconds(self):
        """TOK-012"""
        assert token_expiry(token({"exp": 4102444800})) == 4102444800 * SECOND
        assert token_expiry(token({"exp": 4102444800.9, "x": "ü?>"})) == 4102444800 * SECOND

    @pytest.mark.parametrize("padding", range(4))
    def test_any_length_is_decoded(self, padding):
        assert token_expiry(token({"exp": 1, "p": "?" * padding})) == SECOND

    @pytest.mark.parametrize(
        ("claim", "shown"),
        [
            ("4102444800", "string"),
            (True, "bool"),
            (None, "<nil>"),
            ({"at": 1}, "map[string]interface {}"),
            ([1], "[]interface {}"),
        ],
    )
    def test_a_claim_that_is_no_number_is_refused(self, claim, shown):
        """TOK-010"""
        with pytest.raises(BadToken) as refused:
            token_expiry(token({"exp": claim}))
        assert str(refused.value) == f"token claims 'exp' has unexpected type {shown}"

    def test_a_token_without_the_claim_is_refused(self):
        """TOK-011"""
        with pytest.raises(BadToken, match=r"^token claims are missing 'exp'$"):
            token_expiry(token({"sub": "me"}))

    @pytest.mark.parametrize("parts", [1, 2, 4])
    def test_it_has_three_parts(self, parts):
        with pytest.raises(BadToken, match=f"^invalid token segment size: {parts}$"):
            token_expiry(".".join(["e30"] * parts))

    @pytest.mark.parametrize("claims", ["???", "e30=e30", "é", "bm90IGpzb24"])
    def test_what_is_no_json_is_refused_and_not_shown(self, claims):
        with pytest.raises(BadToken, match="not JSON in base64url") as refused:
            token_expiry(f"a.{claims}.c")
        assert claims not in str(refused.value)

    def test_a_character_alone_is_no_base64(self):
        with pytest.raises(BadToken, match="not JSON in base64url"):
            token_expiry("a.e.c")

    def test_what_is_no_object_is_refused(self):
        with pytest.raises(BadToken, match="no JSON object"):
            token_expiry(token([1]))

    @pytest.mark.parametrize("moment", [-1, 1e300, 253402300800])
    def test_a_moment_that_no_calendar_has_is_refused(self, moment):
        with pytest.raises(BadToken, match="no point in time"):
            token_expiry(token({"exp": moment}))


class TestPace:
    def test_a_days_token_is_renewed_after_six_to_twelve_hours(self):
        assert RefreshPace().delay(DAY, 0.0) == DAY / 4
        assert RefreshPace().delay(DAY, 0.999) == pytest.approx(DAY / 2, rel=0.01)

    @pytest.mark.parametrize("good_for", [0.0, 1.0, 19.9])
    def test_without_a_token_that_lasts_it_is_tried_again_after_five_to_ten_seconds(self, good_for):
        for interval in (None, 3600.0):
            assert RefreshPace().delay(good_for, 0.0, interval) == 5.0
            assert RefreshPace().delay(good_for, 0.5, interval) == 7.5

    def test_an_interval_takes_the_place_of_the_fraction(self):
        assert RefreshPace().delay(DAY, 0.5, 1800.0) == 2700.0

    @given(
        good_for=st.floats(20, 1e7), chance=st.floats(0, 1, exclude_max=True), interval=st.none() | st.floats(1, 1e9)
    )
    def test_no_interval_lets_the_token_expire(self, good_for, chance, interval):
        assert 0 < RefreshPace().delay(good_for, chance, interval) <= good_for * 0.9

    def test_another_fraction_and_retry_count(self):
        pace = RefreshPace(validity=600, fraction=600_000, retry=1e-9)
        assert pace.delay(600.0, 0.0) == pytest.approx(0.001)


class TestInterval:
    def test_none_is_set(self):
        assert refresh_interval("") is None

    def test_it_is_in_seconds(self):
        assert refresh_interval("30m") == 1800.0
        assert refresh_interval("1.5s") == 1.5

    @pytest.mark.parametrize("text", ["30", "soon", "-5s", "0", "999ms"])
    def test_what_is_no_interval_is_refused_by_its_text(self, text):
        with pytest.raises(ValueError, match=f'"{text}"'):
            refresh_interval(text)
