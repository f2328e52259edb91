"""The self-contained executable: it works where nothing else is, and leaves nothing behind (DISP-001 ff., case P05)."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select
from typing import IO

import pytest

from integration.plugin.host import Host
from integration.plugin.kernel import succeed
from patience import TRIES

NAMES = ("calico", "calico-ipam", "my-custom-cni")
SERVER = Path(__file__).with_name("name_and_tls_server.py")
Call = Callable[..., "subprocess.CompletedProcess[str]"]


def tree(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path.relative_to(root)): (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in root.rglob("*")}


@pytest.fixture
def call(root: Path) -> Call:
    """Run one of its names with the empty folder as root directory and only the given environment."""

    def run(name: str, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        words = ["/usr/sbin/chroot", root, f"/{name}", *arguments]
        return subprocess.run(
            words, env=environment, input=given, text=True, capture_output=True, check=False, timeout=60
        )

    return run


# --- alone ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_version_in_an_empty_root_with_an_empty_environment(name: str, call: Call, root: Path) -> None:
    before = tree(root)
    done = call(name, CNI_COMMAND="VERSION")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.0.0" in json.loads(done.stdout)["supportedVersions"]
    assert tree(root) == before


def test_sub_commands_and_help(call: Call) -> None:
    assert call("calico", "version").stdout.startswith("v")
    assert call("calico", "-v").stdout == call("calico", "version").stdout
    assert call("tortie", "--help").stdout.startswith("usage: tortie")


def test_nothing_is_opened_for_version(executable: Path) -> None:
    """By the kernel's own account: no file but the program itself is looked for."""
    trace = ["strace", "-f", "-e", "trace=file", executable / "calico"]
    done = subprocess.run(trace, env={"CNI_COMMAND": "VERSION"}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    looked_at = [line for line in done.stderr.splitlines() if "(" in line and not line.startswith("execve")]
    assert [line for line in looked_at if 'open("/proc/self/exe", O_RDONLY' not in line] == []


@pytest.mark.parametrize("given", ["", "{", "[]", '{"cniVersion": "9.9.9", "name": "n"}'])
def test_errors_are_cni_json(given: str, call: Call, root: Path) -> None:
    before = tree(root)
    done = call("calico", given=given, CNI_COMMAND="ADD", CNI_CONTAINERID="c", CNI_NETNS="/n", CNI_IFNAME="eth0")
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] > 0
    assert tree(root) == before


def test_a_file_that_has_been_cut_off_says_so(executable: Path, tmp_path: Path) -> None:
    """As a full disk leaves it, and installers that do not look."""
    whole = (executable / "calico").read_bytes()
    short = tmp_path / "calico"
    short.write_bytes(whole[: len(whole) * 3 // 4])
    short.chmod(0o755)
    ended = subprocess.run([short], env={"CNI_COMMAND": "VERSION"}, capture_output=True, text=True, check=False)
    said = json.loads(ended.stdout)
    assert (ended.returncode, said["code"]) == (1, 999)
    assert said["msg"].startswith("the plugin cannot read its own file")


def test_errors_of_the_system_are_worded_as_everywhere(host: Host) -> None:
    """Not in the words of the C library that is inside: messages are searched for."""
    container = host.container()
    symbolic_links = host.folder / "datastore.db"
    symbolic_links.symlink_to("datastore.db")
    answer = host.add(container, sqlite_path=f"{symbolic_links}/x")
    assert os.strerror(errno.ELOOP) in answer.error(11)["msg"]


def test_library_transports_are_refused_in_words(host: Host) -> None:
    container = host.container()
    environment = host.environment("ADD", container, TORTIE_TRANSPORT="library")
    host.raw(environment, json.dumps(host.netconf())).error(7, "TORTIE_TRANSPORT", "lean transports only")


# --- at work --------------------------------------------------------------------------------------------------------


def in_the_root(root: Path, host: Host) -> str:
    """Shell text: become a process whose root is the folder, with /proc, /sys and the namespaces in it."""
    places = {"/proc": "/proc", "/var/run/netns": "/var/run/netns"}
    steps = [f"mkdir -p {root}{there}; mount --rbind {here} {root}{there}" for here, there in places.items()]
    return "; ".join([*steps, f'exec /usr/sbin/chroot {root} "$@"'])


def test_a_container_comes_and_goes_in_an_empty_root(root: Path, host: Host) -> None:
    """ADD, CHECK and DEL with the executable's own IPAM; only what they are for is written."""
    container = host.container()
    settings = {"sqlite_path": "/data/datastore.db", "log_file_path": "/data/cni.log", "ipam_lock_file": "/data/lock"}
    environment = host.environment("ADD", container, CNI_PATH="/")
    netconf = host.netconf(**settings)

    def work(verb: str, text: str) -> str:
        answer = host.raw(
            environment | {"CNI_COMMAND": verb}, text, program=Path("/calico"), through=in_the_root(root, host)
        )
        assert answer.exit == 0, answer
        return answer.stdout

    added = json.loads(work("ADD", json.dumps(netconf)))
    (address,) = [entry["address"] for entry in added["ips"]]
    assert container.inside.addresses("eth0") == [address.partition("/")[0] + "/32"]
    assert host.devices() == {container.host_name}
    work("CHECK", json.dumps(netconf | {"cniVersion": "0.4.0", "prevResult": added | {"cniVersion": "0.4.0"}}))
    work("DEL", json.dumps(netconf))
    assert host.left() == {}
    written = {name for name in tree(root) if not name.startswith(("proc", "var"))} - {"data", "calico", "tortie"}
    assert written - {"calico-ipam", "my-custom-cni"} <= {"data/datastore.db", "data/cni.log", "data/lock"}


# --- names and TLS --------------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A self-signed certificate for the names under which tests reach the server, and its key, in one file."""
    names = ",".join(f"DNS:{name}" for name in ("etcd.hosts.test", "etcd.six.test", "etcd.named.test"))
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    succeed(*words, "-subj", "/CN=test", "-addext", f"subjectAltName={names}", "-keyout", key, "-out", certificate)
    both = tmp_path / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    return both


@pytest.fixture
def handshakes(host: Host, authority: Path) -> Iterator[IO[bytes]]:
    """What the server says, in the host's namespace, where port 53 is free."""
    words = ["nsenter", f"--net={host.net.path}", "--", sys.executable, SERVER, authority]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield server.stdout
        finally:
            server.kill()


def connect(host: Host, root: Path, authority: Path, **settings: str) -> str:
    """`calico -t` in the empty root; what it says is wrong with the datastore."""
    (root / "ca.pem").write_bytes(authority.read_bytes())
    netconf = {"cniVersion": "0.3.1", "name": "n", "type": "calico", "datastore_type": "etcdv3", **settings}
    answer = host.raw(
        {}, json.dumps(netconf), "-t", program=Path("/calico"), through=f'exec /usr/sbin/chroot {root} "$@"'
    )
    assert answer.exit == 1  # the server says nothing after the handshake
    return answer.stdout


def greeting(handshakes: IO[bytes], connect: Callable[[], object]) -> str:
    """The name that the server was asked for; each try has two seconds, which may be too little on a busy machine."""
    for _ in range(TRIES):
        connect()
        if select([handshakes], [], [], 5)[0]:
            return handshakes.readline().decode().strip()
    return ""


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("hosts", "127.0.0.1 localhost\n127.0.0.1 etcd.hosts.test\n", "etcd.hosts.test"),
        ("hosts", "::1 etcd.six.test\n", "etcd.six.test"),
        ("resolv.conf", "nameserver 127.0.0.1\n", "etcd.named.test"),
    ],
)
def test_names_are_looked_up_and_certificates_checked(
    file: str, text: str, name: str, host: Host, root: Path, authority: Path, handshakes: IO[bytes]
) -> None:
    """With one file in /etc and no library beside it: the hosts file, IPv6, and a name server."""
    (root / "etc").mkdir()
    (root / "etc" / file).write_text(text)
    settings = {"etcd_endpoints": f"https://{name}:2379", "etcd_ca_cert_file": "/ca.pem"}
    assert greeting(handshakes, lambda: connect(host, root, authority, **settings)) == name


def test_service_records_lead_to_the_server(host: Host, root: Path, authority: Path, handshakes: IO[bytes]) -> None:
    (root / "etc").mkdir()
    (root / "etc" / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    settings = {"etcd_discovery_srv": "named.test", "etcd_ca_cert_file": "/ca.pem"}
    assert greeting(handshakes, lambda: connect(host, root, authority, **settings)) == "etcd.named.test"


def test_a_certificate_of_somebody_else_is_refused(
    host: Host, root: Path, authority: Path, handshakes: IO[bytes]
) -> None:
    assert handshakes
    (root / "etc").mkdir()
    (root / "etc" / "hosts").write_text("127.0.0.1 stranger.test\n")
    said = connect(host, root, authority, etcd_endpoints="https://stranger.test:2379", etcd_ca_cert_file="/ca.pem")
    assert "certificate" in said


def test_a_name_that_nobody_knows_ends_in_time(host: Host, root: Path, authority: Path) -> None:
    """Neither hosts file nor name server: an answer after the connection test's two seconds, not a hang."""
    began = time.monotonic()
    said = connect(host, root, authority, etcd_endpoints="https://nowhere.test:2379", etcd_ca_cert_file="/ca.pem")
    assert "data store connection failed" in said
    assert time.monotonic() - began < 20


# --- what it is made of ---------------------------------------------------------------------------------------------


def test_licences_of_all_that_is_inside_lie_beside_it(executable: Path) -> None:
    licences = {path.name: path.read_text() for path in (executable / "LICENSES").iterdir()}
    assert {"CPython", "OpenSSL", "SQLite", "musl", "PyYAML", "tortie"} <= set(licences)
    assert all(len(text) > 200 for text in licences.values())
    assert {line.split()[0] for line in (executable / "versions").read_text().splitlines()} >= {"CPython", "OpenSSL"}


def test_no_path_of_the_machine_that_built_it_is_in_it(executable: Path) -> None:
    content = (executable / "calico").read_bytes()
    for place in (str(Path.home()), str(Path(__file__).resolve().parents[3])):
        assert f"{place}/".encode() not in content
