"""The ports as dependency-injector providers, over the very functions in `wiring` that plugins call.

For programs that live longer than a plugin call, and for tests: `Container.datastore.override(...)` swaps one port and
leaves the rest. (The package takes longer to load than a plugin call takes, so plugins do without.)

Invariant: declaring loads no adapter; a provider loads and opens its own on first use, and gives the same object ever
after.
"""

from __future__ import annotations

from dependency_injector import containers, providers

from domain.cni.netconf import NetConf
from entrypoints.logs import CallLog
from entrypoints.wiring import calico as wiring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Container(containers.DeclarativeContainer):
    """Override `netconf` and `environment` with what the program was given; `create` lets it make a datastore.

    `inline` is for certificates that stand in a configuration file themselves.
    """

    netconf = providers.Object(NetConf())
    environment: providers.Object[Mapping[str, str]] = providers.Object({})
    create = providers.Object(False)
    inline = providers.Object(wiring.NO_INLINE)

    log = providers.Singleton(CallLog, "tortie")
    clock = providers.Singleton(wiring.clock)
    exported = providers.Singleton(wiring.exported, netconf, environment)
    servers = providers.Singleton(wiring.api_servers, netconf, exported, clock, hasty=True)
    datastore = providers.Singleton(
        wiring.datastore,
        exported,
        netconf.provided.sqlite_path,
        clock,
        servers,
        create=create,
        inline=inline,
        log=log,
        hasty=True,
    )
    cluster = providers.Singleton(wiring.cluster, netconf, exported, servers)
    dataplane = providers.Singleton(wiring.dataplane, netconf, clock, log, exported)
    node = providers.Singleton(wiring.node)
    lock = providers.Singleton(wiring.lock, netconf.provided.ipam_lock_file, clock, log)
    readiness = providers.Singleton(wiring.readiness, clock)
    runtime = providers.Singleton(wiring.open_runtime, netconf, environment, log)
    ipam_plugin = providers.Singleton(wiring.ipam_plugin, netconf, exported, runtime)
