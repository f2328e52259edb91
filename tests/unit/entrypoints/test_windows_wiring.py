"""Which adapters a plugin has on Windows, as far as another system lets them be opened."""

from __future__ import annotations

import pytest

from adapters.grpc.dataplane import GrpcDataplane
from adapters.memory.log import RecordingLog
from adapters.windows.dataplane import WindowsDataplane
from adapters.windows.host_networking import WindowsHostNetworking
from adapters.windows.lock import WindowsLock
from adapters.windows.node import WindowsNode
from adapters.windows.plugin_exec import WindowsIpamPlugin
from adapters.windows.seam import HnsAbsent
from domain.cni.netconf import IpamSettings, NetConf
from entrypoints.wiring import windows
from entrypoints.wiring.own_ipam import OwnIpamPlugin
from ports.errors import BadConfiguration, Refused

ENVIRONMENT = {"CNI_CONTAINERID": "c1", "CNI_PATH": r"c:\opt\cni\bin"}


def opened(environment=ENVIRONMENT, **fields):
    return windows.open_windows_runtime(NetConf(name="n", **fields), environment, RecordingLog())


def test_each_port_has_its_adapter_for_windows():
    runtime = opened()
    assert runtime.on_windows
    for port, adapter in {
        "dataplane": WindowsDataplane,
        "host_networking": WindowsHostNetworking,
        "node": WindowsNode,
        "lock": WindowsLock,
        "ipam_plugin": WindowsIpamPlugin,
    }.items():
        assert isinstance(getattr(runtime, port), adapter)
    assert runtime.former.host_local().__class__ is WindowsIpamPlugin
    assert runtime.former.installed().folder == "/etc/cni/net.d"


def test_without_the_service_a_call_says_so():
    with pytest.raises((Refused, HnsAbsent), match=r"HcnOpenNamespace|computenetwork"):
        opened().dataplane.examine("8e9a1c32-0000-4000-8000-00155d000000", "eth0", opened().clock.deadline(5))


def test_another_dataplane_can_be_asked_for():
    assert isinstance(opened(dataplane_type="grpc", dataplane_options={"socket": "x"}).dataplane, GrpcDataplane)
    with pytest.raises(Refused, match="invalid dataplane type: other"):
        opened(dataplane_type="other").dataplane  # noqa: B018 - opening it is the point


def test_our_own_ipam_works_in_this_process(tmp_path):
    for name in ("calico.exe", "calico-ipam.exe"):
        (tmp_path / name).write_text(f"{'x' * 300}\n# build-stamp: 1\n")
    environment, program = {"CNI_PATH": f"c:\\nowhere;{tmp_path}"}, str(tmp_path / "calico.exe")

    def chosen(type):
        netconf = NetConf(ipam=IpamSettings(type=type))
        return windows.ipam_plugin(netconf, environment, opened(), program)

    assert isinstance(chosen("calico-ipam"), OwnIpamPlugin)
    assert isinstance(chosen("host-local"), WindowsIpamPlugin)
    with pytest.raises(BadConfiguration, match="is the network plugin itself"):
        chosen("calico")
