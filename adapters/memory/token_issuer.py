"""A cluster that gives tokens, for tests: `accounts` are those it has.

Invariant: no two tokens are alike. `fault`, while it is set, is what every request ends with.
"""

from __future__ import annotations

from domain.install.kubeconfig import KubeconfigCluster
from domain.moment import SECOND
from ports.errors import Missing
from ports.token_issuer import IssuedToken, TokenIssuer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ports.clock import Clock, Deadline
    from ports.errors import PortError

_CLUSTER = KubeconfigCluster("https://10.96.0.1:443", b"-----BEGIN CERTIFICATE-----\n")


class MemoryTokenIssuer(TokenIssuer):
    """`asked` lists what was asked for: namespace, account, seconds."""

    def __init__(self, clock: Clock, accounts: Iterable[str] = ("kube-system/calico-cni-plugin",)) -> None:
        self._clock = clock
        self.accounts = set(accounts)
        self.known_cluster = _CLUSTER
        self.fault: PortError | None = None
        self.asked: list[tuple[str, str, int]] = []

    def own_namespace(self) -> str:
        return "kube-system"

    def request_token(self, namespace: str, account: str, seconds: int, deadline: Deadline) -> IssuedToken:  # noqa: ARG002 - the port's
        self.asked.append((namespace, account, seconds))
        if self.fault is not None:
            raise self.fault
        name = f"{namespace}/{account}"
        if name not in self.accounts:
            raise Missing(f"ServiceAccount({name})", f'serviceaccounts "{account}" not found')
        return IssuedToken(f"{account}.token.{len(self.asked)}", seconds, self._clock.now() + seconds * SECOND)

    def cluster(self) -> KubeconfigCluster:
        return self.known_cluster
