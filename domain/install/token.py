"""How long a service account's token is good, and when the next one is fetched.

A token that the API server has just given says itself for how long it is good, so this machine's clock need not be
right. One that somebody else has put into a file can only be compared with the clock.

Invariant: the next one is fetched before the one in use expires, whatever interval is asked for; and without one that
works, soon.
"""

from __future__ import annotations

from domain.json_text import parse
from domain.moment import SECOND
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

VALIDITY = 86_400  # seconds that a token is asked for
ACCOUNT = "calico-cni-plugin"
"""Whose token it is, unless CALICO_CNI_SERVICE_ACCOUNT names another."""
_LATEST = 0.9  # of a token's life: whatever the interval, the next one is asked for by then
_SHORTEST_INTERVAL = SECOND
END_OF_TIME = 253_402_300_800  # seconds: the first moment of the year 10000


class BadToken(ValueError):
    """No token that says when it expires. The text does not show it."""


def token_expiry(token: str) -> int:
    """When a JSON Web Token expires: nanoseconds since the epoch, whole seconds. BadToken, in the original's words."""
    claims = token_claims(token)
    if "exp" not in claims:
        raise BadToken("token claims are missing 'exp'")
    expires = claims["exp"]
    if isinstance(expires, bool) or not isinstance(expires, (int, float)):
        raise BadToken(f"token claims 'exp' has unexpected type {_go_type(expires)}")
    if not 0 <= expires < END_OF_TIME:
        raise BadToken("token claims 'exp' is no point in time")
    return int(expires) * SECOND


def token_claims(token: str) -> dict[str, Json]:
    """What a JSON Web Token says, whoever has signed it. BadToken."""
    from binascii import Error, a2b_base64

    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken(f"invalid token segment size: {len(parts)}")
    encoded = parts[1]
    padded = encoded + "=" * (-len(encoded) % 4)
    try:
        octets = a2b_base64(padded.replace("-", "+").replace("_", "/").encode("ascii"), strict_mode=True)
        claims = parse(octets.decode("utf-8", "replace"))
    except (Error, ValueError):
        raise BadToken("the second part of the token is not JSON in base64url") from None
    if not isinstance(claims, dict):
        raise BadToken("the second part of the token is no JSON object")
    return claims


def _go_type(value: Json) -> str:
    if value is None:
        return "<nil>"
    return {bool: "bool", str: "string", list: "[]interface {}", dict: "map[string]interface {}"}[type(value)]


class RefreshPace(Value):
    """`validity`: seconds that each token is asked for. `fraction`: of what a token is still good for, the part after
    which it is renewed. `retry`: seconds until another try. To each of the two up to as much again is added by
    chance, so that not all nodes ask at once.
    """

    validity: int = VALIDITY
    fraction: int = 4
    retry: float = 5.0

    def delay(self, good_for: float, chance: float, interval: float | None = None) -> float:
        """Seconds to wait. `good_for`: seconds, 0 if there is no token; `chance`: 0 up to, but not including, 1;
        `interval`: what an operator asks for in place of the fraction.
        """
        if good_for < self.fraction * self.retry:
            return self.retry * (1 + chance)
        base = good_for / self.fraction if interval is None else interval
        return min(base * (1 + chance), good_for * _LATEST)


def refresh_interval(text: str) -> float | None:
    """Seconds, of CNI_TOKEN_REFRESH_INTERVAL; None if it is not set. ValueError for what is no interval."""
    from domain.go_duration import parse_go_duration

    if not text:
        return None
    interval = parse_go_duration(text)
    if interval < _SHORTEST_INTERVAL:
        raise ValueError(f'"{text}" is shorter than a second')
    return interval / SECOND
