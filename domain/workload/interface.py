"""What a container's device is called on the host.

Felix recognises its devices by prefix, and derives a Kubernetes pod's device name itself, so both must be exactly the
original's (spec: cni-plugin 5.6).

Invariant: the name depends on the identity and the configured prefix alone.
"""

from __future__ import annotations

from domain.workload.identity import KUBERNETES, Identity

DEFAULT_PREFIX = "cali"
_SUFFIX_LENGTH = 11


def host_interface_name(identity: Identity, felix_prefixes: str = "") -> str:
    """`felix_prefixes` is the text of FELIX_INTERFACEPREFIX: its first comma item counts, for Kubernetes only."""
    if identity.orchestrator != KUBERNETES:
        return DEFAULT_PREFIX + identity.container_id[:_SUFFIX_LENGTH]
    # Only pods need it, and `hashlib` would load OpenSSL for the same digest.
    from _sha1 import sha1  # type: ignore[import-not-found]  # CPython's own C module, unknown to typeshed

    named = f"{identity.namespace}.{identity.pod}".encode("utf-8", "surrogateescape")
    digest: str = sha1(named).hexdigest()  # a name, not a secret
    return (felix_prefixes.partition(",")[0] or DEFAULT_PREFIX) + digest[:_SUFFIX_LENGTH]
