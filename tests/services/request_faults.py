"""Which requests of a `KubeProxy` something happens to, and what: they come late, are refused, lost, kept waiting.

    proxy.arm(at("PATCH", "/status"), answer(409, status(409, "Conflict")), times=2)

Invariant: an action says whether the server carries the request out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from services.kube_proxy import Action, Asked, Exchange, Reply, When, relay

# --- which requests -------------------------------------------------------------------------------------------------


def numbered(number: int) -> When:
    return lambda asked: asked.number == number


def from_number(number: int) -> When:
    return lambda asked: asked.number >= number


def at(method: str, part: str = "") -> When:
    """Of that method (`*`: any), and with that in the path."""
    return lambda asked: method in ("*", asked.method) and part in asked.path


def every(_asked: Asked) -> bool:
    return True


# --- what to do with them -------------------------------------------------------------------------------------------


def delay(seconds: float) -> Action:
    def action(exchange: Exchange) -> None:
        exchange.pause(seconds)
        relay(exchange)

    return action


def answer(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> Action:
    """In the server's place, which never hears of it. A dictionary becomes JSON."""
    text = json.dumps(body).encode() if isinstance(body, dict) else body
    kind = "application/json" if isinstance(body, dict) else "text/plain"
    shown = [("Content-Type", kind)] + [(name.replace("_", "-"), value) for name, value in headers.items()]
    return lambda exchange: exchange.pass_on(Reply(status, shown, text))


def status(code: int, reason: str, message: str = "injected") -> dict[str, Any]:
    """Kubernetes' own form of a refusal."""
    whole = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return whole | {"message": message, "reason": reason, "code": code}


def page(code: int) -> Action:
    """What a load balancer or a login portal answers."""
    html = b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"
    return lambda exchange: exchange.pass_on(Reply(code, [("Content-Type", "text/html")], html))


def lose_reply(exchange: Exchange) -> None:
    """It is carried out, and the client never hears of it."""
    exchange.forward()
    exchange.reset()


def reset(exchange: Exchange) -> None:
    """It is not carried out."""
    exchange.reset()


def stall(exchange: Exchange) -> None:
    """It is not carried out, and nobody says so."""
    exchange.hang()


def stall_after_head(exchange: Exchange) -> None:
    """It is carried out; of the answer only the headers come."""
    exchange.send_head(exchange.forward())
    exchange.hang()


def close_when_idle(exchange: Exchange) -> None:
    """Answered, and then the connection ends without having said so."""
    relay(exchange)
    exchange.close()


def after(step: Callable[[], None]) -> Action:
    """The request has been carried out; the step comes before its answer."""

    def action(exchange: Exchange) -> None:
        reply = exchange.forward()
        step()
        exchange.pass_on(reply)

    return action


def before(step: Callable[[], None]) -> Action:
    def action(exchange: Exchange) -> None:
        step()
        relay(exchange)

    return action
