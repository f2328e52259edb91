"""Tokens of service accounts, from the cluster that this process belongs to.

Plugins live for milliseconds on a token in a file. Whoever writes that file asks here for a new one from time to time,
and for the server that goes with it.

Invariant: nothing is remembered; each answer goes by what this process is told at that moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.install.kubeconfig import KubeconfigCluster
    from ports.clock import Deadline


class IssuedToken(Value):
    """`good_for`: seconds from now on. `expires` is an instant."""

    text: str
    good_for: float
    expires: int

    def __repr__(self) -> str:
        return f"IssuedToken(good_for={self.good_for})"  # not the token


class TokenIssuer(ABC):
    """Each verb looks anew at what it is told by (variables, mounted files, kubeconfig): all of that gets replaced.

    `ports.errors.BadConfiguration` where it cannot be used.
    """

    @abstractmethod
    def own_namespace(self) -> str:
        """The namespace of the pod that this process is part of."""

    @abstractmethod
    def request_token(self, namespace: str, account: str, seconds: int, deadline: Deadline) -> IssuedToken:
        """A new token. From a server that gives none it is the pod's own token, for as long as that is still good.

        `ports.errors.Missing` if there is no such account, `Unauthorized` if we may not have its tokens.
        """

    @abstractmethod
    def cluster(self) -> KubeconfigCluster:
        """The server that tokens are from, as we are told to reach it."""
