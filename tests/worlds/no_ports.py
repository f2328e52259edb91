"""A runtime without any port, for calls that shall end before they need one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.memory.clock import MemoryClock
from domain.cni.netconf import NetConf
from ports.log import Log
from ports.runtime import Runtime


def opener_without_ports(error: Exception) -> Callable[[NetConf, Mapping[str, str], Log], Runtime]:
    """What `main` takes to open the ports; each of them raises the error when it is asked for."""

    def no_port() -> Any:
        raise error

    def open_runtime(_netconf: NetConf, _environ: Mapping[str, str], log: Log) -> Runtime:
        return Runtime(
            datastore=no_port,
            cluster=no_port,
            dataplane=no_port,
            ipam_plugin=no_port,
            node=no_port,
            lock=no_port,
            readiness=no_port,
            former=no_port,
            clock=MemoryClock(),
            log=log,
        )

    return open_runtime
