"""Readiness gate URLs are read as Go's `url.ParseRequestURI` reads them, and never shown with a password."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.cni.gate_url import GateUrl, parse_gate_url, resolve_redirect, shown


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:9099/readiness", GateUrl("http", "127.0.0.1", 9099, "/readiness")),
        ("http://localhost", GateUrl("http", "localhost", 80, "/")),
        ("HTTPS://Example.org/a?b=%zz", GateUrl("https", "Example.org", 443, "/a?b=%zz")),
        ("http://h?x=1/2", GateUrl("http", "h", 80, "/?x=1/2")),
        ("http://[::1]:80/x", GateUrl("http", "::1", 80, "/x")),
        ("http://[fe80::1%25eth0]/", GateUrl("http", "fe80::1%eth0", 80, "/")),
        ("http://h:/", GateUrl("http", "h", 80, "/")),
        ("http://user:p%40ss@h/", GateUrl("http", "h", 80, "/", "user:p@ss")),
        ("http://h/a b#ü", GateUrl("http", "h", 80, "/a%20b%23%C3%BC")),
        ("/only/a/path", GateUrl("", "", 0, "/only/a/path")),
        ("///x", GateUrl("", "", 0, "///x")),
        ("http:///x", GateUrl("http", "", 0, "///x")),
        ("unix:/run/x.sock", GateUrl("unix", "", 0, "/run/x.sock")),
        ("mailto:x@example.org", GateUrl("mailto", "", 0, "x@example.org")),
        ("//h/x", GateUrl("", "h", 0, "/x")),
        ("*", GateUrl("", "", 0, "*")),
    ],
)
def test_absolute_uris_and_absolute_paths_are_read(text: str, url: GateUrl) -> None:
    assert parse_gate_url(text) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'parse "": empty url'),
        ("localhost", 'parse "localhost": invalid URI for request'),
        ("127.0.0.1:9099/x", 'parse "127.0.0.1:9099/x": invalid URI for request'),
        (":9099", 'parse ":9099": missing protocol scheme'),
        ("http://h/\n", 'parse "http://h/\\n": net/url: invalid control character in URL'),
        ("http://h/\x7f", 'parse "http://h/\\x7f": net/url: invalid control character in URL'),
        ("http://h:80x/", 'parse "http://h:80x/": invalid port ":80x" after host'),
        ("http://[::1]80/", 'parse "http://[::1]80/": invalid port "80" after host'),
        ("http://[::1/", "parse \"http://[::1/\": missing ']' in host"),
        ("http://a b/", 'parse "http://a b/": invalid character " " in host name'),
        ("http://u ser@h/", 'parse "http://u ser@h/": net/url: invalid userinfo'),
        ('http://h/"\\%zz', 'parse "http://h/\\"\\\\%zz": invalid URL escape "%zz"'),
        ("/%1", 'parse "/%1": invalid URL escape "%1"'),
    ],
)
def test_anything_else_is_refused_with_gos_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared below
        parse_gate_url(text)
    assert str(refused.value) == why


@given(st.text())
@example("http://[")
@example("http://\ud800/\ud800")
def test_every_text_is_either_read_or_refused(text: str) -> None:
    try:
        url = parse_gate_url(text)
    except ValueError:
        return
    assert url.target.isascii() or not url.fetchable


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("http://other:81/x", "http://other:81/x"),
        ("https://other/x#part", "https://other/x"),
        ("//other/x", "http://other/x"),
        ("/x?y", "http://h:80/x?y"),
        ("z", "http://h:80/a/z"),
        ("?q", "http://h:80/a/b?q"),
        ("", "http://h:80/a/b"),
    ],
)
def test_a_redirect_is_resolved_against_the_url_it_came_from(location: str, leads_to: str) -> None:
    base = parse_gate_url("http://h/a/b?c")
    assert resolve_redirect(base, location) == parse_gate_url(leads_to)


def test_only_http_with_a_host_can_be_fetched() -> None:
    fetchable = [parse_gate_url(text).fetchable for text in ("http://h/", "https://h/", "ftp://h/", "/h", "http:///h")]
    assert fetchable == [True, True, False, False, False]


def test_the_host_header_leaves_out_the_schemes_own_port() -> None:
    texts = ("http://h:80/", "http://h:81/", "https://h/", "http://[::1]:8080/")
    assert [parse_gate_url(text).authority for text in texts] == ["h", "h:81", "h", "[::1]:8080"]


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("http://u:secret@h/x", "http://u:xxxxx@h/x"),
        ("http://u@h/x", "http://u@h/x"),
        ("http://h/x@y", "http://h/x@y"),
        ("/path", "/path"),
    ],
)
def test_a_password_is_never_shown(text: str, visible: str) -> None:
    assert shown(text) == visible


def test_the_reason_for_refusing_a_url_does_not_show_its_password() -> None:
    with pytest.raises(ValueError, match="xxxxx") as refused:
        parse_gate_url("http://u:secret@h:bad/")
    assert "secret" not in str(refused.value)
