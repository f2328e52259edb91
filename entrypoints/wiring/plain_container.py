"""The ports of an operator's command where the package that `container` is made with is not to be had.

The self-contained executable has no packages. This has of `Container` what `tortie` uses.

Invariant: each port is opened on first use, once, from what has been overridden until then.
"""

from __future__ import annotations

from domain.cni.netconf import NetConf
from entrypoints.logs import CallLog
from entrypoints.wiring import calico as wiring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Once:
    """Called, it gives what `make` makes, the same ever after; or what it has been overridden with."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: list[Any] = []

    def override(self, given: Any) -> None:
        self._made = [given]

    def __call__(self) -> Any:
        if not self._made:
            self._made = [self._make()]
        return self._made[0]


class PlainContainer:
    """Override `netconf`, `environment`, `create` and `inline` with what the program was given."""

    def __init__(self) -> None:
        self.netconf = Once(NetConf)
        self.environment = Once(dict)
        self.create = Once(bool)
        self.inline = Once(lambda: wiring.NO_INLINE)
        self.log = Once(lambda: CallLog("tortie"))
        self.clock = Once(wiring.clock)
        self.node = Once(wiring.node)
        self.exported = Once(lambda: wiring.exported(self.netconf(), self.environment()))
        self.servers = Once(lambda: wiring.api_servers(self.netconf(), self.exported(), self.clock(), hasty=True))
        self.datastore = Once(self._datastore)
        self.cluster = Once(lambda: wiring.cluster(self.netconf(), self.exported(), self.servers()))

    def _datastore(self) -> Any:
        return wiring.datastore(
            self.exported(),
            self.netconf().sqlite_path,
            self.clock(),
            self.servers(),
            create=self.create(),
            inline=self.inline(),
            log=self.log(),
            hasty=True,
        )
