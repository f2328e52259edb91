"""How long the plugins' token still lasts, and whether somebody renews it.

A refresher renews a token after a quarter to a half of its time. One that is older is nobody's care any more, and all
calls on the node will fail at its end.

Invariant: nothing of a token but its times is ever shown.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error, ok, warning
from domain.install.token import END_OF_TIME, BadToken, token_claims
from domain.moment import SECOND, rfc3339
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.doctor.diagnosis import Diagnosis
    from domain.doctor.seen import CredentialsSeen
    from domain.json_text import Json

KUBECONFIG, TOKEN = "kubeconfig", "token"
RENEW = "see that `tortie refresh-token` runs on this node, or Calico's node agent, which renews it as well"
_SKEW = 60  # seconds that clocks may be apart
_LONG = 600  # seconds over half of a token's time that a refresher may take


class TokenTimes(Value):
    """Seconds since the epoch; None where the token does not say."""

    issued: int | None = None
    expires: int | None = None


def token_times(token: str) -> TokenTimes:
    """Nothing for what is no JSON Web Token."""
    try:
        claims = token_claims(token.strip())
    except BadToken:
        return TokenTimes()
    return TokenTimes(_seconds(claims.get("iat")), _seconds(claims.get("exp")))


def _seconds(claim: Json) -> int | None:
    if isinstance(claim, bool) or not isinstance(claim, (int, float)):
        return None
    return int(claim) if 0 <= claim < END_OF_TIME else None


def judge_token(seen: CredentialsSeen, now: int) -> Diagnosis:
    """`now` is nanoseconds since the epoch."""
    times, at = token_times(seen.token), now // SECOND
    if times.expires is None:
        return ok(TOKEN, "it names no end of its time" if seen.token else f"none: the kubeconfig has {seen.way}")
    end = rfc3339(times.expires * SECOND)
    if times.expires <= at:
        return error(TOKEN, f"it has expired at {end}, {span(at - times.expires)} ago", RENEW)
    left = span(times.expires - at)
    if times.issued is None:
        return ok(TOKEN, f"good until {end}, for {left}")
    return _judge_age(times.issued, times.expires, at)


def _judge_age(issued: int, expires: int, at: int) -> Diagnosis:
    end = rfc3339(expires * SECOND)
    if issued > at + _SKEW:
        ahead = span(issued - at)
        seen_text = f"it was issued {ahead} from now by this host's clock"
        return warning(TOKEN, seen_text, "set the clock: the server refuses tokens by its own")
    lifetime, age = expires - issued, at - issued
    if age > lifetime // 2 + _LONG:
        return warning(
            TOKEN, f"{span(age)} old of {span(lifetime)}, and nobody has renewed it; good until {end}", RENEW
        )
    return ok(TOKEN, f"{span(max(0, age))} old of {span(lifetime)}, good until {end}")


def span(seconds: int) -> str:
    """`3 h 20 min`, in the two largest units."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((at for at, (number, _) in enumerate(parts) if number), 3)
    return " ".join([f"{number} {unit}" for number, unit in parts[first : first + 2] if number]) or "0 s"
