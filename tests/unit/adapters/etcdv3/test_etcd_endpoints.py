"""Lists of endpoints as configurations spell them."""

from __future__ import annotations

import pytest

from adapters.etcdv3.settings import Endpoint, parse_endpoints
from ports.errors import BadConfiguration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:2379", [Endpoint("127.0.0.1", 2379, False)]),
        ("https://etcd-1.example:2379/", [Endpoint("etcd-1.example", 2379, True)]),
        (" http://a:1 , http://b:2,", [Endpoint("a", 1, False), Endpoint("b", 2, False)]),
        ("https://[fd00::1]:2379", [Endpoint("fd00::1", 2379, True)]),
        ("etcd:2379", [Endpoint("etcd", 2379, True)]),  # the original takes TLS for meant
        ("", []),
        (" ,", []),
    ],
)
def test_a_list_of_urls(text, expected):
    assert parse_endpoints(text) == tuple(expected)


@pytest.mark.parametrize("text", ["http://a:1", "https://[fd00::1]:65535"])
def test_an_endpoint_prints_as_it_was_given(text):
    assert str(parse_endpoints(text)[0]) == text


@pytest.mark.parametrize(
    "item",
    [
        *("http://a", "http://:2379", "http://a:0", "http://a:65536", "http://a:x", "ftp://a:1", "unix:///run/e.sock"),
        *("http://fd00::1:2379", "http://[a]:1", "http://[]:1", "http://a b:1", "http://a:²", "http://a:" + "1" * 5000),
    ],
)
def test_what_is_no_endpoint_is_named_and_does_no_harm_beside_one_that_is(item):
    with pytest.raises(BadConfiguration) as caught:
        parse_endpoints(item)
    assert repr(item) in str(caught.value)
    told = []
    assert parse_endpoints(f"http://good:1,{item}", told.append) == (Endpoint("good", 1, False),)
    assert told == [f"{caught.value}; going on with the other endpoints"]


@pytest.mark.parametrize(
    ("text", "secure"),
    [
        ("http://a:1,https://b:1", False),
        ("https://b:1,http://a:1", True),
        ("a:1,http://b:1", True),
        ("http://a,https://b:1", False),
        ("HTTP://a:1,https://b:1", False),
    ],
)
def test_of_a_mixed_list_the_first_decides_for_all(text, secure):
    told = []
    assert {one.secure for one in parse_endpoints(text, told.append)} == {secure}
    assert "mixes http and https, and the first decides" in told[-1]


@pytest.mark.parametrize("text", ["http://me:planted-secret@a:1", "https://me:planted-secret@[::1]:1,https://b:2"])
def test_a_user_name_in_a_url_counts_for_nothing_and_is_not_repeated(text):
    told = []
    assert parse_endpoints(text, told.append) == parse_endpoints(text.replace("me:planted-secret@", ""))
    assert "ETCD_USERNAME" in told[0]
    assert "planted-secret" not in told[0]


@pytest.mark.parametrize("text", ["http://me:planted-secret@a", "ftp://me:planted-secret@a:1", "me:planted-secret@a"])
def test_no_error_shows_a_password(text):
    with pytest.raises(BadConfiguration) as caught:
        parse_endpoints(text)
    assert "planted-secret" not in str(caught.value)
