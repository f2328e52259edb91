"""An installation on a Windows node: places, settings, the template."""

from __future__ import annotations

import json

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.cni.netconf import read_netconf
from domain.install.errors import CannotInstall
from domain.install.template import Template
from domain.install.windows import in_container, supports_dsr, windows_places, windows_settings
from domain.windows.conf import read_windows_conf
from entrypoints.wiring.windows_installer import asked_dsr, places
from ports.errors import Refused
from worlds.install_world import InstallWorld

MOUNT = "C:\\hpc"
TOLD = "\r\nWindowsVersion OsBuildNumber OsHardwareAbstractionLayer\r\n-------------- -------------\r\n{} {} {}\r\n"


def settings(*, dsr=True, **environ):
    return windows_settings({"CONTAINER_SANDBOX_MOUNT_POINT": MOUNT, **environ}, "WIN-1", dsr=dsr)


def rendered(template="", *, dsr=True, **environ):
    chosen = settings(dsr=dsr, **environ)
    made = Template(template or chosen.built_in)
    assert made.unknown(chosen) == ()
    return made.render(chosen, "token", ()).document


def plugin(**more):
    (only,) = rendered(**more)["plugins"]
    return only


def test_the_built_in_template():
    document = rendered()
    assert (document["name"], document["cniVersion"]) == ("Calico", "1.0.0")
    (one,) = document["plugins"]
    assert one["kubernetes"]["kubeconfig"] == "c:/etc/cni/net.d/calico-kubeconfig"
    assert (one["mode"], one["vxlan_vni"], one["vxlan_mac_prefix"]) == ("vxlan", 4096, "0E-2A")
    assert (one["nodename"], one["nodename_file"]) == ("win-1", "c:/var/run/calico/nodename")
    assert one["log_file_path"] == "c:/var/log/calico/cni/cni.log"
    assert one["windows_loopback_DSR"] is True
    assert (one["ipam"], one["etcd_key_file"]) == ({"type": "calico-ipam", "subnet": "usePodCidr"}, "")
    assert [policy["Value"] for policy in one["policies"]] == [
        {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.10"]},
        {"Type": "SDNROUTE", "DestinationPrefix": "10.96.0.10", "NeedEncap": True},
    ]


def test_the_plugin_reads_what_is_installed():
    conf = read_windows_conf(read_netconf(plugin(KUBERNETES_DNS_SERVERS="10.96.0.10, 10.96.0.11")))
    assert (conf.is_overlay, conf.single_network, conf.loopback_dsr) == (True, True, True)
    assert (conf.dns.nameservers, conf.dns.search) == (("10.96.0.10", "10.96.0.11"), ("svc.cluster.local",))
    assert [policy.type for policy in conf.policies] == ["OutBoundNAT", "SDNROUTE"]


def test_each_setting_has_its_placeholder():
    one = plugin(
        dsr=False,
        KUBERNETES_SERVICE_CIDRS="10.96.0.0/12 , 10.97.0.0/16",
        ROUTE_TYPE="ROUTE",
        VXLAN_VNI="4099",
        MAC_PREFIX="aa-bb",
        CALICO_NODENAME_FILE="c:/nodename",
        CALICO_NETWORKING_BACKEND="BGP",
        CNI_IPAM_TYPE="host-local",
        CNI_NET_DIR="d:\\cni",
        LOG_FILE_PATH="c:/log",
        KUBERNETES_NODE_NAME="node",
    )
    assert (one["mode"], one["vxlan_vni"], one["vxlan_mac_prefix"]) == ("windows-bgp", 4099, "aa-bb")
    assert (one["nodename"], one["nodename_file"], one["log_file_path"]) == ("node", "c:/nodename", "c:/log")
    assert (one["ipam"]["type"], one["windows_loopback_DSR"]) == ("host-local", False)
    assert one["kubernetes"]["kubeconfig"] == "d:/cni/calico-kubeconfig"
    assert [policy["Value"].get("DestinationPrefix") for policy in one["policies"]] == [
        None,
        "10.96.0.0/12",
        "10.97.0.0/16",
    ]
    assert one["policies"][1]["Value"]["Type"] == "ROUTE"


def test_an_overlay_needs_calico_ipam():
    with pytest.raises(CannotInstall, match="Calico VXLAN requires IPAM type calico-ipam, not host-local"):
        settings(CNI_IPAM_TYPE="host-local")


def test_paths_are_below_the_mount_point():
    found = windows_places(MOUNT)
    assert found == places({"CONTAINER_SANDBOX_MOUNT_POINT": MOUNT})
    assert found.net_dir == "C:/hpc/host/etc/cni/net.d"
    assert found.bin_dirs == ("C:/hpc/host/opt/cni/bin", "C:/hpc/host/secondary-bin-dir")
    assert found.programs == ("C:/hpc/usr/bin/calico.exe", "C:/hpc/opt/cni/bin/calico.exe")
    assert found.service_account == "C:/hpc/var/run/secrets/kubernetes.io/serviceaccount"
    assert windows_places("").net_dir == "/host/etc/cni/net.d"
    chosen = settings(TLS_ASSETS_DIR="c:/calico-secrets", CNI_NETWORK_CONFIG_FILE="\\template")
    assert (chosen.tls_assets_dir, chosen.template_file) == ("C:/hpc/calico-secrets", "C:/hpc/template")


@pytest.mark.parametrize("path", ["/x/y", "c:/x/y", "C:\\x\\y", "$env:CONTAINER_SANDBOX_MOUNT_POINT/x/y", "x/y"])
def test_a_path_loses_its_drive_and_its_variable(path):
    assert in_container(path, "c:/hpc/") == "c:/hpc/x/y"


@pytest.mark.parametrize(
    ("version", "build", "layer", "expected"),
    [
        (1809, 17763, "10.0.17763.1432", True),
        (1809, 17763, "10.0.17763.1431", False),
        (1809, 17762, "10.0.17763.1432", False),
        (1809, 17763, "10.0", False),
        (1903, 18317, "10.0.18317.1", True),
        (1903, 18316, "10.0.18317.9999", False),
        (2009, 20348, "10.0.20348.1", True),
        (1803, 99999, "10.0.1.9999", False),
    ],
)
def test_which_windows_lets_a_container_reach_itself(version, build, layer, expected):
    assert supports_dsr(TOLD.format(version, build, layer)) is expected


def test_windows_is_asked_ten_times():
    clock, log, answers = (
        MemoryClock(),
        RecordingLog(),
        ["", "a\r\nb\r\nc\r\nd e f", TOLD.format(1903, 18317, "1.2.3.4")],
    )
    assert asked_dsr(lambda: answers.pop(0), clock, log)
    assert len(log.shown("warning")) == 2

    def refuse():
        raise Refused("no PowerShell")

    with pytest.raises(CannotInstall, match="Failed to retrieve Windows version information to determine DSR support"):
        asked_dsr(refuse, clock, log)
    assert len(log.shown("warning")) == 12


def test_an_installation_has_windows_names():
    """The whole story over memory: executables, kubeconfig, configuration."""
    world = InstallWorld()
    world.places = windows_places("")
    world.be_a_pod()
    world.files.put("/usr/bin/calico.exe", "v1", 0o755)
    chosen = settings(KUBERNETES_SERVICE_HOST="10.96.0.1", KUBERNETES_SERVICE_PORT="443", SLEEP="false")
    world.install_with(chosen.replace(tls_assets_dir="/calico-secrets"))
    assert world.names("/host/opt/cni/bin") == ("calico-ipam.exe", "calico.exe")
    assert world.names("/host/etc/cni/net.d") == ("10-calico.conflist", "calico-kubeconfig")
    conf = json.loads(world.files.read("/host/etc/cni/net.d/10-calico.conflist"))
    assert conf["plugins"][0]["kubernetes"]["kubeconfig"] == "c:/etc/cni/net.d/calico-kubeconfig"
