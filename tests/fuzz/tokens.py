"""Service accounts' tokens, the kubeconfig that they are put into, and the interval at which that is done."""

from __future__ import annotations

import base64
import json
import re
from fractions import Fraction

import yaml

from adapters.kubernetes.credentials.kubeconfig import inline_kubeconfig
from domain.go_duration import parse_go_duration
from domain.install.kubeconfig import (
    BadKubeconfigValue,
    KubeconfigCluster,
    installed_kubeconfig,
    renewed_kubeconfig,
)
from domain.install.token import BadToken, refresh_interval, token_expiry
from domain.moment import SECOND
from fuzz.target import Allowed, Target, attempt, octets_of, require, text_of

# What Go's manual says a duration is.
_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[-+]?(0|({_PART})+)")
_NANOSECONDS = {
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 10**6,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ns": 1,
}
_EXPIRES = base64.urlsafe_b64encode(b'{"exp": 4102444800}').decode().rstrip("=")


def _token(octets: bytes) -> None:
    """The octets are a token; and, encoded, the claims of one."""
    text = text_of(octets)
    with Allowed(BadToken):
        token_expiry(text)
    encoded = base64.urlsafe_b64encode(octets).decode().rstrip("=")
    read, found = attempt(lambda: token_expiry(f"e30.{encoded}.c2ln"), BadToken)
    known, theirs = attempt(lambda: json.loads(text), ValueError, RecursionError)
    expires = theirs.get("exp") if known and isinstance(theirs, dict) else None
    if read:
        require(isinstance(expires, (int, float)), "an end that the library does not see", text)
        require(found == int(expires) * SECOND, "we read different ends", text, found, expires)
    elif isinstance(expires, int) and not isinstance(expires, bool):
        require(not 0 <= expires < 253402300800, "an end that is one is refused", text)


def _kubeconfig(octets: bytes) -> None:
    """A URL, a line end, and a token."""
    server, _, token = text_of(octets).partition("\n")
    for write in (installed_kubeconfig, renewed_kubeconfig):
        with Allowed(BadKubeconfigValue):
            text = write(KubeconfigCluster(server, b"-----BEGIN CERTIFICATE-----"), token)
            found = yaml.safe_load(text)
            require(found["clusters"][0]["cluster"]["server"] == server, "the library reads another URL", text)
            require(str(found["users"][0]["user"]["token"]) == token.strip() or _is_other(token), "another token", text)
            cluster, user = inline_kubeconfig(text, "")
            require(cluster.server == server, "we read another URL", text)
            require(user.token == token.strip() or _is_other(token), "we read another token", text)


def _is_other(token: str) -> bool:
    """A text that YAML reads as a number or the like. No token is one: it begins with `e` and has two dots."""
    return not isinstance(yaml.safe_load(token), str)


def _duration(octets: bytes) -> None:
    text = text_of(octets)
    read, found = attempt(lambda: parse_go_duration(text), ValueError)
    like = _DURATION.fullmatch(text) is not None
    require(not read or like, "a duration that Go refuses", text)
    if like:
        parts = [Fraction(number) * _NANOSECONDS[unit] for number, unit in re.findall(_PART, text)]
        most, exact = 1 << 63, sum(parts)
        require(read or exact >= most - len(parts), "a duration that Go takes is refused", text)
        require(not read or exact - len(parts) <= abs(found) <= exact < most + len(parts), "not as long", text, found)
    with Allowed(ValueError):
        require((refresh_interval(text) or 1.0) >= 1.0, "an interval too short", text)


TARGETS = (
    Target(
        "token",
        _token,
        octets_of(
            f"e30.{_EXPIRES}.c2ln",
            *(
                '{"exp": 4102444800}',
                '{"exp": 1.5e9}',
                '{"exp": "1"}',
                '{"exp": true}',
                '{"exp": -1}',
                "[]",
                "e30.e30.x",
            ),
        ),
        form="json",
        most=512,
    ),
    Target(
        "kubeconfig_text",
        _kubeconfig,
        octets_of(
            "https://[fd00::1]:6443\neyJhbGciOi.e30.c2ln", "https://k #x\na: b", "http://k:\n- a", "a\n'b", "k\n~"
        ),
        form="text",
        most=256,
    ),
    Target(
        "go_duration",
        _duration,
        octets_of("30m", "1h15m30.918273645s", "-.5s", "+5.s", "0", "1µs1ns", "9223372036854775807ns", "1d", "1.2.3s"),
        most=64,
    ),
)
