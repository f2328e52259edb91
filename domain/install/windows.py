"""What is different about an installation on a Windows node: paths, the template, and what its placeholders stand for.

The container is a HostProcess one: it sees the host's own file system, and its image's below a mount point that a
variable tells. So each path of the container is put below that; what the configuration says is the host's, with a
drive.

Invariant: pure; the platform's placeholders are replaced before those that every platform has, in the order given here.
"""

from __future__ import annotations

from domain.install.errors import CannotInstall
from domain.install.places import KUBECONFIG, SERVICE_ACCOUNT, Places
from domain.install.settings import InstallSettings, read_settings
from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOUNT_POINT = "CONTAINER_SANDBOX_MOUNT_POINT"
VXLAN, CALICO_IPAM = "vxlan", "calico-ipam"
_LITERAL = f"$env:{MOUNT_POINT}"
_DRIVE = "c:"
_PROGRAM, _STAGED = "/usr/bin/calico.exe", "/opt/cni/bin"
_DEFAULTS = {
    "KUBERNETES_SERVICE_CIDRS": "10.96.0.10",
    "ROUTE_TYPE": "SDNROUTE",
    "VXLAN_VNI": "4096",
    "MAC_PREFIX": "0E-2A",
    "CALICO_NODENAME_FILE": "c:/var/run/calico/nodename",
    "KUBERNETES_DNS_SERVERS": "10.96.0.10",
    "CALICO_NETWORKING_BACKEND": VXLAN,
    "CNI_IPAM_TYPE": CALICO_IPAM,
    "LOG_FILE_PATH": "c:/var/log/calico/cni/cni.log",
}
_DSR_FROM = (1903, 18317)  # version and build; the one before needs a revision of its hardware layer
_DSR_EARLIER = (1809, 17763, 1432)

BUILT_IN = """\
{
  "name": "Calico",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "name": "Calico",
      "windows_use_single_network": true,
      "mode": "__MODE__",
      "vxlan_mac_prefix": "__MAC_PREFIX__",
      "vxlan_vni": __VNI__,
      "mtu": __CNI_MTU__,
      "policy": {"type": "k8s"},
      "log_level": "__LOG_LEVEL__",
      "log_file_path": "__LOG_FILE_PATH__",
      "windows_loopback_DSR": "__DSR_SUPPORT__",
      "capabilities": {"dns": true},
      "DNS": {
        "Nameservers": [__KUBERNETES_DNS_SERVERS__],
        "Search": ["svc.cluster.local"]
      },
      "nodename": "__KUBERNETES_NODE_NAME__",
      "nodename_file": "__NODENAME_FILE__",
      "nodename_file_optional": true,
      "datastore_type": "__DATASTORE_TYPE__",
      "etcd_endpoints": "__ETCD_ENDPOINTS__",
      "etcd_key_file": "__ETCD_KEY_FILE__",
      "etcd_cert_file": "__ETCD_CERT_FILE__",
      "etcd_ca_cert_file": "__ETCD_CA_CERT_FILE__",
      "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
      "ipam": {"type": "__IPAM_TYPE__", "subnet": "usePodCidr"},
      "policies": [
        {
          "Name": "EndpointPolicy",
          "Value": {"Type": "OutBoundNAT", "ExceptionList": [__KUBERNETES_SERVICE_CIDRS__]}
        },
        __KUBERNETES_ROUTE_POLICIES__
      ]
    }
  ]
}"""


def windows_places(mount: str) -> Places:
    """Where an installer finds things, and puts them, as this process sees it."""
    places = Places()
    return places.replace(
        bin_dirs=tuple([in_container(path, mount) for path in places.bin_dirs]),
        net_dir=in_container(places.net_dir, mount),
        programs=(in_container(_PROGRAM, mount), in_container(f"{_STAGED}/calico.exe", mount)),
        staged=in_container(_STAGED, mount),
        service_account=in_container(SERVICE_ACCOUNT, mount),
        names=("calico.exe", "calico-ipam.exe"),
    )


def in_container(path: str, mount: str) -> str:
    """A path of the container where its root file system is at `mount` ("" for the root itself)."""
    path = path.replace("\\", "/")
    if not mount:
        return path
    path = path.removeprefix("c:").removeprefix("C:").removeprefix(_LITERAL)
    return f"{mount.replace(chr(92), '/').rstrip('/')}/{path.lstrip('/')}"


def windows_settings(environ: Mapping[str, str], host_name: str, *, dsr: bool) -> InstallSettings:
    """`dsr`: whether this Windows lets a container reach itself through its service. CannotInstall as elsewhere."""
    mount = environ.get(MOUNT_POINT, "")
    settings = read_settings(environ, host_name)
    backend, ipam = _of(environ, "CALICO_NETWORKING_BACKEND"), _of(environ, "CNI_IPAM_TYPE")
    if backend == VXLAN and ipam != CALICO_IPAM:
        raise CannotInstall(f"Calico VXLAN requires IPAM type calico-ipam, not {ipam}; change CNI_IPAM_TYPE")
    net_dir = settings.host_net_dir.replace("\\", "/")
    if net_dir[1:2] != ":":
        net_dir = f"{_DRIVE}{net_dir}"
    return settings.replace(
        host_net_dir=net_dir,
        tls_assets_dir=in_container(settings.tls_assets_dir, mount),
        template_file=in_container(settings.template_file, mount) if settings.template_file else "",
        built_in=BUILT_IN,
        platform=_platform(environ, net_dir, backend, ipam, dsr=dsr),
    )


def _of(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, _DEFAULTS[name])


def _platform(
    environ: Mapping[str, str], net_dir: str, backend: str, ipam: str, *, dsr: bool
) -> tuple[tuple[str, str], ...]:
    """What is replaced by what, in this order: one value brings a later placeholder in."""
    services = _listed(_of(environ, "KUBERNETES_SERVICE_CIDRS"))
    routes = [
        f'{{"Name": "EndpointPolicy", "Value": {{"Type": "__ROUTE_TYPE__", "DestinationPrefix": {cidr},'
        ' "NeedEncap": true}}'
        for cidr in services
    ]
    return (
        ("__KUBECONFIG_FILEPATH__", f"{net_dir}/{KUBECONFIG}"),
        ("__LOG_FILE_PATH__", _of(environ, "LOG_FILE_PATH")),
        ("__KUBERNETES_SERVICE_CIDRS__", ",".join(services)),
        ("__KUBERNETES_ROUTE_POLICIES__", ",\n".join(routes)),
        ("__ROUTE_TYPE__", _of(environ, "ROUTE_TYPE")),
        ("__VNI__", _of(environ, "VXLAN_VNI")),
        ("__MAC_PREFIX__", _of(environ, "MAC_PREFIX")),
        ("__NODENAME_FILE__", _of(environ, "CALICO_NODENAME_FILE")),
        ("__KUBERNETES_DNS_SERVERS__", ",".join(_listed(_of(environ, "KUBERNETES_DNS_SERVERS")))),
        ("__MODE__", "windows-bgp" if backend.lower() in ("bird", "bgp") else backend),
        ("__IPAM_TYPE__", ipam),
        ('"__DSR_SUPPORT__"', "true" if dsr else "false"),
    )


def _listed(text: str) -> list[str]:
    """Each entry as JSON has it."""
    return [dumps(one.strip()) for one in text.split(",")]


def supports_dsr(told: str) -> bool:
    """What `Get-ComputerInfo | select WindowsVersion, OsBuildNumber, OsHardwareAbstractionLayer` says of it.

    ValueError for an answer that cannot be read.
    """
    lines = told.split("\r\n")
    fields = lines[3].split() if len(lines) > 3 else []
    if len(fields) != 3:
        raise ValueError(f"unexpected output of Get-ComputerInfo: {told!r}")
    version, build = int(fields[0]), int(fields[1])
    revision = int((fields[2].split(".") + ["0"] * 4)[3])
    if version == _DSR_EARLIER[0]:
        return build >= _DSR_EARLIER[1] and revision >= _DSR_EARLIER[2]
    return version >= _DSR_FROM[0] and build >= _DSR_FROM[1]
