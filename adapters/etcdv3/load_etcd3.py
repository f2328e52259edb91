"""Loading the transport on the `etcd3` package. gRPC takes its settings from the environment, and once: when loaded.

Invariant: gRPC is loaded nowhere but here, and after its settings are made.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.etcdv3.transport import Open, Tls
    from adapters.etcdv3.transport_etcd3 import Withheld

# gRPC has no setting for the oldest version of TLS. This is a cipher of version 1.2 that needs a key known to both
# sides beforehand, so nobody can agree on it; version 1.3 has ciphers of its own.
NO_CIPHER_BEFORE_1_3 = "ECDHE-PSK-AES128-CBC-SHA"
CIPHERS = "GRPC_SSL_CIPHER_SUITES"


def load_etcd3(tls: Tls, withheld: Callable[[], Withheld]) -> Open:
    """What opens connections with that `tls`. ImportError where the packages are missing."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to stderr what its errors say anyway
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # its handlers crash a child that only execs a plugin
    if tls.only_newest:
        os.environ[CIPHERS] = NO_CIPHER_BEFORE_1_3
    from adapters.etcdv3.race_etcd3 import etcd3_opener

    return etcd3_opener(withheld)
