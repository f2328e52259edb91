"""Keeping the plugins' kubeconfig usable: a new token long before the one in the file expires, and at once when
Kubernetes has replaced the credentials that this process itself goes by.

Invariant: the file has at every moment a token that was good when it was written, and whoever reads it sees one whole
version. A failure leaves what is there, and is tried again in seconds. No token reaches a log.
"""

from __future__ import annotations

from domain.install.kubeconfig import MODE, BadKubeconfigValue, installed_kubeconfig, renewed_kubeconfig
from domain.install.places import KUBECONFIG
from domain.install.token import ACCOUNT, RefreshPace
from domain.moment import SECOND, rfc3339
from domain.value import Value
from ports.errors import PortError, Refused
from ports.host_files import HostFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ports.clock import Clock
    from ports.folder_watch import FolderWatch
    from ports.host_files import HostFiles
    from ports.log import Log
    from ports.token_issuer import IssuedToken, TokenIssuer

_ANSWER_WITHIN = 30.0  # seconds for the server to give a token
_LOOK_EVERY = 60.0  # seconds; a clock that does not count while the machine sleeps would miss the moment by as much


class Renewal(Value):
    """`folder` is that of network configurations, `watched` that of this pod's own credentials; a `namespace` of "" is
    the pod's. `interval`: seconds that an operator wants between two renewals. `insecure`: plugins shall believe
    whoever answers at the server's address.
    """

    folder: str
    watched: str
    namespace: str = ""
    account: str = ACCOUNT
    interval: float | None = None
    insecure: bool = False
    as_installed: bool = False
    pace: RefreshPace = RefreshPace()

    @property
    def path(self) -> str:
        return f"{self.folder}/{KUBECONFIG}"


class TokenRefresher:
    """Whoever has more to wait for calls `pause` and `turn` in a loop of its own; `keep_fresh` is that loop.

    `chance` gives a number from 0 up to, but not including, 1.
    """

    def __init__(
        self, renewal: Renewal, issuer: TokenIssuer, files: HostFiles, clock: Clock, *, chance: Callable[[], float]
    ) -> None:
        self.renewal = renewal
        self._issuer = issuer
        self._files = files
        self._clock = clock
        self._chance = chance
        self._namespace = renewal.namespace
        self._due = clock.monotonic()
        self._due_at = clock.now()

    def prepare(self) -> None:
        """See that there is somebody to ask, and as whom; a PortError says what to change."""
        self._namespace = self._namespace or self._issuer.own_namespace()
        self._issuer.cluster()

    def renew(self) -> IssuedToken:
        """Write the file with a new token. A PortError if that is not to be had."""
        renewal = self.renewal
        deadline = self._clock.deadline(_ANSWER_WITHIN)
        token = self._issuer.request_token(self._namespace, renewal.account, renewal.pace.validity, deadline)
        cluster = self._issuer.cluster()
        cluster = cluster.replace(insecure=cluster.insecure or renewal.insecure)
        try:
            text = (installed_kubeconfig if renewal.as_installed else renewed_kubeconfig)(cluster, token.text)
        except BadKubeconfigValue as error:
            raise Refused(str(error)) from None
        self._files.replace(renewal.path, text.encode(), MODE)
        return token

    def pause(self) -> float:
        """Seconds until `turn` is to be called next. Either clock may say that it is time: one stands still while the
        machine sleeps, the other may be set.
        """
        left = min(self._due - self._clock.monotonic(), (self._due_at - self._clock.now()) / SECOND)
        return min(max(0.0, left), _LOOK_EVERY)

    def turn(self, changed: tuple[str, ...], log: Log) -> None:
        """Renew if it is time, or if our own credentials have changed. It does not fail."""
        if self.renewal.watched not in changed:
            if self.pause() > 0:
                return
            log.info("Update of CNI kubeconfig triggered based on elapsed time.")
        else:
            log.info("Projected service account token changed; refreshing CNI kubeconfig immediately")
        good_for = 0.0
        try:
            token = self.renew()
        except HostFileError as error:
            log.error("Failed to write CNI plugin kubeconfig file", error=error)
        except PortError as error:
            log.error("Failed to update CNI token, retrying...", error=error)
        else:
            good_for = token.good_for
            log.info("Wrote updated CNI kubeconfig file.", path=self.renewal.path, expires=rfc3339(token.expires))
        self._wait_for(good_for)

    def _wait_for(self, good_for: float) -> None:
        delay = self.renewal.pace.delay(good_for, self._chance(), self.renewal.interval)
        self._due = self._clock.monotonic() + delay
        self._due_at = self._clock.now() + round(delay * SECOND)


def keep_fresh(refresher: TokenRefresher, watch: FolderWatch, log: Log) -> NoReturn:
    """Renew the token for ever. It ends with an exception of `watch`, such as that of a signal."""
    blind = False
    changed: tuple[str, ...] = ()
    while True:
        refused = watch.unwatched()
        if refused and not blind:
            log.warning(
                "Failed to set up CNI token directory watcher; refresh will rely on timer only",
                error="; ".join([f"{folder}: {why}" for folder, why in refused.items()]),
            )
        blind = bool(refused)
        refresher.turn(changed, log)
        changed = watch.wait(refresher.pause())
