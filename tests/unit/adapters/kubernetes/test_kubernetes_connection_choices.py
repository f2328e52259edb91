"""Small decisions on the way to a server: whether a proxy is asked, what a URL says, how fast requests may go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.kubernetes.credentials.server import Server, choose_proxy, parse_server, unescaped
from adapters.kubernetes.transport.renewing import Pace
from ports.errors import BadConfiguration

PLANTED = "planted-secret"


def chosen(server: str, url: str = "", **environment: str) -> str:
    found = choose_proxy(url, parse_server(server), environment)
    return str(found) if found else ""


def test_the_kubeconfigs_proxy_is_asked_for_every_server():
    for server in ("https://10.0.0.1", "http://localhost", "https://127.0.0.1"):
        assert chosen(server, "http://p:1", NO_PROXY="*", HTTPS_PROXY="http://q:1") == "http://p:1"


@pytest.mark.parametrize(
    ("url", "port"), [("socks5://p", 1080), ("SOCKS5h://me:pass@p:80/", 80), ("socks5://[::1]:1", 1), ("http://p", 80)]
)
def test_a_proxy_may_speak_socks(url, port):
    found = choose_proxy(url, parse_server("https://a"), {})
    assert (found.port, found.is_socks) == (port, not url.startswith("http"))
    assert str(choose_proxy("", parse_server("https://a"), {"HTTPS_PROXY": "socks5://me:pass@p"})) == "socks5://p"


def test_the_environments_proxy_goes_by_the_scheme():
    both = {"HTTPS_PROXY": "https://secure:1", "HTTP_PROXY": "http://plain:1"}
    assert chosen("https://a", **both) == "https://secure:1"
    assert chosen("http://a", **both) == "http://plain:1"
    assert chosen("http://a", **both, REQUEST_METHOD="GET") == ""
    assert chosen("https://a", https_proxy="small:3128") == "http://small:3128"
    assert chosen("https://a", https_proxy="http://small", HTTPS_PROXY="http://large") == "http://large"
    assert chosen("https://a") == ""


@pytest.mark.parametrize("server", ["https://localhost", "https://127.3.2.1", "https://[::1]:1", "https://LOCALHOST."])
def test_this_machine_is_asked_without_the_environments_proxy(server):
    assert chosen(server, HTTPS_PROXY="http://p") == ""


@pytest.mark.parametrize(
    ("rule", "server", "bypassed"),
    [
        ("*", "https://a", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://a.Example.com", True),
        ("example.com", "https://badexample.com", False),
        (".example.com", "https://example.com", False),
        (".example.com", "https://a.example.com", True),
        ("*.example.com", "https://a.example.com", True),
        ("example.com:6443", "https://example.com:6443", True),
        ("example.com:6443", "https://example.com", False),
        ("10.0.0.1", "https://10.0.0.1", True),
        ("10.0.0.1:443", "https://10.0.0.1", True),
        ("10.0.0.1", "https://10.0.0.10", False),
        ("10.0.0.0/8", "https://10.9.9.9", True),
        ("10.0.0.5/8", "https://10.9.9.9", True),
        ("10.0.0.0/8", "https://a", False),
        ("10.0.0.0/99", "https://10.9.9.9", False),
        ("example.com:0443", "https://example.com", True),
        ("example.com:²", "https://example.com", False),
        (f"example.com:{'4' * 5000}", "https://example.com", False),
        ("fd00::1", "https://[fd00:0::1]", True),
        ("[fd00::1]:443", "https://[fd00::1]", True),
        ("fd00::/8", "https://[fd00::1]", True),
        ("", "https://a", False),
    ],
)
def test_no_proxy(rule, server, bypassed):
    for rules in (rule, f" x.example , {rule}"):
        assert chosen(server, HTTPS_PROXY="http://p", NO_PROXY=rules) == ("" if bypassed else "http://p")


@pytest.mark.parametrize(
    "url", ["socks4://me:planted-secret@p", "socks5://", "http://", "http://me:planted-secret@p:x"]
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(url):
    for name, action in (
        ("proxy-url", lambda: chosen("https://a", url)),
        ("HTTPS_PROXY", lambda: chosen("https://a", HTTPS_PROXY=url)),
    ):
        with pytest.raises(BadConfiguration, match=f"^the proxy that {name} names cannot be used") as caught:
            action()
        assert PLANTED not in str(caught.value)


def test_ipv4_in_brackets_as_calicos_installers_have_written_it():
    assert parse_server("https://[10.96.0.1]:443") == parse_server("https://10.96.0.1:443")
    for host in ("api.example.org", "10.96.0", "1.2.3.4.5", "10.96.0.x"):
        with pytest.raises(ValueError, match="brackets"):
            parse_server(f"https://[{host}]:443")


def test_the_user_of_a_url_is_unescaped_and_not_shown():
    found = parse_server("http://me:p%40ss%3A%25@p:1")
    assert found == Server("http", "p", 1, "", "me:p@ss:%")
    assert "ss" not in f"{found} {found!r} {[found]}"


def test_a_host_as_http_and_a_proxy_name_it():
    assert (parse_server("https://[::1]").authority, parse_server("https://[::1]").place) == ("[::1]", "[::1]:443")
    assert parse_server("https://a:80").authority == "a:80"
    assert unescaped("%zz%4") == "%zz%4"


@given(st.text())
def test_any_text_is_a_server_or_an_error_that_does_not_show_it(text):
    try:
        found = parse_server(text, scheme="https")
    except ValueError as error:
        said = str(error)
        assert said.startswith("it") or "port" in said or "brackets" in said
    else:
        again = parse_server(str(found))
        assert (again.scheme, again.host, again.port, again.prefix) == (
            *(found.scheme, found.host, found.port),
            found.prefix,
        )


@given(st.integers(1, 20), st.sampled_from([0.5, 1.0, 5.0]), st.lists(st.tuples(st.integers(1, 5), st.floats(0, 3))))
def test_no_more_is_let_through_than_the_pace_allows(burst, qps, asked):
    """Whoever waits as long as told, sends no more than `burst + qps * time` up to any moment."""
    pace = Pace(qps, burst)
    now, sent = 1000.0, 0
    for requests, later in asked:
        now += later
        now += pace.wait_for(requests, now)
        sent += requests
        assert sent <= burst + qps * (now - 1000.0) + 1e-6


def test_the_default_pace_lets_a_plugin_call_through():
    pace = Pace(5.0, 100)
    assert [pace.wait_for(1, 1.0) for _ in range(100)] == [0.0] * 100
    assert pace.wait_for(1, 1.0) > 0


def test_no_limit():
    assert Pace(0.0, 1).wait_for(1_000_000, 1.0) == 0
