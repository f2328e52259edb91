"""What it takes to reach etcd, read from settings as the original names them (spec: datastore A).

Invariant: settings that exist are complete: files have been read, and there is exactly one way to find
the servers. What is wrong is said now, not when a connection times out.
"""

from __future__ import annotations

from adapters.etcdv3.certificates import read_tls
from adapters.etcdv3.endpoint import parse_endpoints
from adapters.etcdv3.transport import Tls
from domain.value import Value
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.etcdv3.endpoint import Endpoint


_WHERE = (
    'set "etcd_endpoints" in the network configuration, or ETCD_ENDPOINTS in the environment, to a list such as '
    "http://10.0.0.1:2379,http://10.0.0.2:2379"
)


class EtcdSettings(Value):
    """`discovery` is the domain whose SRV records name the endpoints, when none are given.

    `user` and `password` are both empty or both set.
    """

    endpoints: tuple[Endpoint, ...] = ()
    discovery: str = ""
    user: str = ""
    password: str = ""
    tls: Tls = Tls()

    def __repr__(self) -> str:
        return f"EtcdSettings({self})"  # not the password

    def __str__(self) -> str:
        if self.discovery:
            return f"the etcd of SRV domain {self.discovery}"
        return f"etcd {','.join([str(endpoint) for endpoint in self.endpoints])}"


def read_settings(
    setting: Callable[[str], str], inline: Mapping[str, str], warn: Callable[[str], None] = lambda _text: None
) -> EtcdSettings:
    """`setting` gives the value of a name such as ETCD_ENDPOINTS, "" when it is not set. An empty value is none.

    Certificates come `inline` (etcdCACert, etcdCert, etcdKey) only from a configuration file. `warn` is told what is
    taken otherwise than it is written. BadConfiguration, or Refused with the original's words.
    """
    endpoints = parse_endpoints(setting("ETCD_ENDPOINTS"), warn)
    discovery = setting("ETCD_DISCOVERY_SRV").strip()
    if endpoints and discovery:
        raise Refused(
            'multiple discovery or bootstrap options specified, use either "etcdEndpoints" or "etcdDiscoverySrv"'
        )
    if not endpoints and not discovery:
        raise Refused("no etcd endpoints specified", details=_WHERE)
    user, password = setting("ETCD_USERNAME"), setting("ETCD_PASSWORD")
    if not (user and password):
        user = password = ""
    plain = bool(endpoints) and not endpoints[0].secure
    return EtcdSettings(endpoints, discovery, user, password, read_tls(setting, inline, warn if plain else None))
