"""What every plugin's configuration has, whatever else is in it: the keys that reading, logging and delegating use.

Invariant: each of our plugins has its own configuration type derived from this one, and no key means two things.
"""

from __future__ import annotations

from domain.value import Value

METRICS_FILE = "tortie_cni.prom"  # in the folder `metrics_dir`
NETWORK_PLUGIN = "calico"
OWN_IPAM = "calico-ipam"  # the IPAM plugin that comes with the network plugin


class Delegate(Value):
    """The `ipam` section as far as the caller of an IPAM plugin looks at it; "" is no IPAM."""

    type: str = ""


class PluginConf(Value):
    """`prev_result` is the JSON text of `prevResult` ("" if absent); log limits are 0 for the defaults. In
    `metrics_dir` calls are counted, unless it is "".

    `warnings` are what reading the configuration has to tell an operator: what was taken otherwise than it is written,
    and what to write instead. The frame of the call logs them.
    """

    cni_version: str = ""
    name: str = ""
    type: str = ""
    timeout_seconds: int = 0
    log_level: str = ""
    log_format: str = ""
    log_file_path: str = ""
    log_file_max_size: int = 0
    log_file_max_age: int = 0
    log_file_max_count: int = 0
    metrics_dir: str = ""
    ipam: Delegate = Delegate()
    prev_result: str = ""
    warnings: tuple[str, ...] = ()
