"""Lists of endpoints as configurations spell them."""

from __future__ import annotations

import pytest

from adapters.etcdv3.endpoint import Endpoint, parse_endpoints
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
        *("http://fd00::1:2379", "http://[a]:1", "http://[]:1", "http://a b:1", "http://a:²"),
    ],
)
def test_what_is_no_endpoint_is_named(item):
    with pytest.raises(BadConfiguration) as caught:
        parse_endpoints(f"http://good:1,{item}")
    assert repr(item) in str(caught.value)


def test_http_and_https_in_one_list_are_refused():
    """The original would use the first one's way for all and time out on the rest."""
    with pytest.raises(BadConfiguration, match="mixes http and https"):
        parse_endpoints("http://a:1,https://b:1")


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(BadConfiguration, match="ETCD_USERNAME") as caught:
        parse_endpoints("http://me:planted-secret@a:1")
    assert "planted-secret" not in str(caught.value)
