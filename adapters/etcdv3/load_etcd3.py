"""Loading the transport on the `etcd3` package, after gRPC's settings are made.

Invariant: the packages are loaded by the call, not by the import of this module.
"""

from __future__ import annotations

from adapters.wire.grpcio import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.etcdv3.transport import EtcdTls, Open
    from adapters.wire.grpcio import Withheld


def load_etcd3(tls: EtcdTls, withheld: Callable[[], Withheld]) -> Open:
    """What opens connections with that `tls`. ImportError where the packages are missing."""
    prepare(only_tls_1_3=tls.only_newest)
    from adapters.etcdv3.race_etcd3 import etcd3_opener

    return etcd3_opener(withheld)
