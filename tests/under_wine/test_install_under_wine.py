"""`calico.exe component cni install` as a HostProcess container runs it, and once more while the old plugin works."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from wine import Wine, windows_path


def another_build(program: Path) -> bytes:
    octets = bytearray(program.read_bytes())
    octets[-2] ^= 1  # of the build stamp
    return bytes(octets)


def install(wine: Wine, mount: Path) -> str:
    settings = {
        "CONTAINER_SANDBOX_MOUNT_POINT": windows_path(mount),
        "SLEEP": "false",
        "CNI_CONF_NAME": "10-calico.conflist",
        "KUBERNETES_SERVICE_CIDRS": "10.96.0.0/12, 10.112.0.0/12",
        "DATASTORE_TYPE": "etcdv3",
        "ETCD_ENDPOINTS": "http://127.0.0.1:1",
        "SKIP_DATASTORE_CHECK": "true",
        "TORTIE_FAKE_HNS": windows_path(mount / "hns.json"),
    }
    done = wine.run(mount / "opt" / "cni" / "bin" / "calico.exe", "component", "cni", "install", environment=settings)
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, said
    return said


def test_it_is_installed_and_replaced_while_it_runs(wine: Wine, built: Path, tmp_path: Path) -> None:
    mount = tmp_path / "hpc"
    staged, target, network = (mount / name for name in ("opt/cni/bin", "host/opt/cni/bin", "host/etc/cni/net.d"))
    for folder in (staged, target, network):
        folder.mkdir(parents=True)
    shutil.copy(built / "calico.exe", staged)
    install(wine, mount)
    assert (target / "calico.exe").read_bytes() == (target / "calico-ipam.exe").read_bytes()
    [plugin] = json.loads((network / "10-calico.conflist").read_text())["plugins"]
    assert (plugin["mode"], plugin["windows_use_single_network"]) == ("vxlan", True)
    assert plugin["windows_loopback_DSR"] is True
    assert plugin["policies"][0]["Value"]["ExceptionList"] == ["10.96.0.0/12", "10.112.0.0/12"]

    asked = {"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c", "CNI_NETNS": "n", "CNI_IFNAME": "i", "CNI_PATH": "p"}
    working = wine.start(target / "calico.exe", environment=asked)  # it waits for its configuration
    try:
        while not (target / ".tortie").is_dir():
            assert working.poll() is None
        fresh = another_build(built / "calico.exe")
        (staged / "calico.exe").unlink()
        (staged / "calico.exe").write_bytes(fresh)
        install(wine, mount)
        assert (target / "calico.exe").read_bytes() == fresh
        assert working.poll() is None
        answer, _said = working.communicate(b"{", timeout=60)
        assert json.loads(answer)["code"] == 6
    finally:
        working.kill()
        working.wait()
    install(wine, mount)  # which removes what was put aside, and what the former build has unpacked
    assert len([*(target / ".tortie").iterdir()]) == 1
    assert {path.suffix for path in target.iterdir() if path.is_dir()} == {""}
