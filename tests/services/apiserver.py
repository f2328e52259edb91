"""A real Kubernetes API server for tests: kube-apiserver with an etcd of its own, started on free loopback ports.

    with ApiServer() as server:                       RBAC, nobody but the administrator may do anything
    with ApiServer(controller_manager=True) as server:   and each namespace gets its service account `default`
    with shared_apiserver() as server:                the one that TORTIE_TEST_KUBECONFIG leads to, else as the first

    server.cluster.serve("v1")                        Calico's custom resources: see `cluster` and `custom_resources`
    server.kubeconfig(path, token=...)                for a program that is to use it
    server.kill(); server.start()                     on the same ports and data

Invariant: nothing outlives the `with` block, neither a process nor its data. Of a server that was there before, what
was in it stays.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from services.etcd import Authority, Etcd, free_ports, pause
from services.kube_client import Object, Refused
from services.kubernetes_server import KubernetesServer, from_kubeconfig

LONGEST_START = 90.0
ROOT = Path(__file__).resolve().parents[2]
_ISSUER = "https://kubernetes.default.svc"
_MEMORY = Path("/dev/shm")
_USERS: Counter[str] = Counter()  # of named servers, by URL
# Of the controller manager only what tests rely on. Others would end pods on nodes without a kubelet.
_CONTROLLERS = "serviceaccount-controller,namespace-controller,garbage-collector-controller"


def find_programs(*more: str) -> dict[str, str]:
    """Paths of kube-apiserver, kube-controller-manager and etcd, as packaging/apiserver.sh finds them.

    With "cluster" also of kube-scheduler and kubelet.

    Not the etcd of `find_etcd`, which may be older than what an API server makes full use of. `RuntimeError` if one is
    missing, with how to get it.
    """
    found = subprocess.run(
        [ROOT / "packaging" / "apiserver.sh", "find", *more], capture_output=True, text=True, check=False, timeout=120
    )
    if found.returncode != 0:
        raise RuntimeError(found.stderr.strip())
    return dict(line.split("=", 1) for line in found.stdout.splitlines())


class Daemon:
    """A process, its log, and its end."""

    def __init__(self, words: list[str], log: Path) -> None:
        self.words, self._log = words, log
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]}
            )

    def await_answer(self, ready: Callable[[], bool]) -> None:
        ends = time.monotonic() + LONGEST_START
        while not ready():
            if self._process is None or self._process.poll() is not None or time.monotonic() > ends:
                state = "ended" if time.monotonic() <= ends else f"not become ready in {LONGEST_START:.0f} s"
                raise RuntimeError(f"{self.words[0]} has {state}:\n{self.log()[-3000:]}")
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def pause(self) -> None:
        """Nothing is answered once this has returned."""
        pause(self.pid)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.send(number)
        self.send(signal.SIGCONT)
        if self._process is not None:
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(30)

    def log(self) -> str:
        return self._log.read_text(errors="replace")


class ApiServer(KubernetesServer):
    """A server of our own. `more` are options of kube-apiserver, such as `--audit-log-path=...`."""

    def __init__(
        self,
        *more: str,
        controller_manager: bool = False,
        rbac: bool = True,
        address: str = "127.0.0.1",
        controllers: Object | None = None,
    ) -> None:
        """`controllers` are options of the controller manager, such as `{"controllers": "*"}`."""
        self._undo = ExitStack()
        self._folder = Path(tempfile.mkdtemp(prefix="tortie-apiserver-", dir=_folder()))
        self._undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            programs = find_programs()
            self.authority = Authority(self._folder / "pki", "tortie test cluster")
            (self.port,) = free_ports(1, address)
            self.address = address
            admin = self.client_certificate("admin", "system:masters")
            host = f"[{address}]" if ":" in address else address
            ca = self.authority.ca.read_bytes()
            super().__init__(f"https://{host}:{self.port}", ca, admin, accounts=controller_manager)
            self._key = self.authority.folder / "accounts.key"
            subprocess.run(["openssl", "genrsa", "-out", self._key, "2048"], check=True, capture_output=True)
            self.etcd = Etcd(within=self._folder, program=programs["etcd"])
            self.daemon = Daemon(
                self._server_words(programs["kube-apiserver"], rbac, more), self._folder / "apiserver.log"
            )
            self.controllers = Daemon(
                self._controller_words(programs["kube-controller-manager"], controllers or {}),
                self._folder / "controllers.log",
            )
        except BaseException:
            self._undo.close()
            raise

    def __enter__(self) -> Self:
        try:
            self._undo.enter_context(self.etcd)
            self._undo.callback(self.daemon.kill)
            self.start()
            self.cluster  # noqa: B018 - takes down what a fresh server has, which is not to be cleared
            if self.accounts:
                self._undo.callback(self.controllers.kill)
                self.controllers.launch()
                self.controllers.await_answer(self._has_accounts)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        super().__exit__()
        self._undo.close()

    def start(self) -> None:
        """Start it, again after `kill` on the same data, and wait until it answers and is complete."""
        self.daemon.launch()
        self.daemon.await_answer(self._is_ready)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End kube-apiserver; its etcd goes on."""
        self.daemon.kill(number)

    def pause(self) -> None:
        self.daemon.pause()

    def resume(self) -> None:
        self.daemon.send(signal.SIGCONT)

    def client_certificate(self, name: str, group: str = "", *, inline: bool = False) -> Object:
        """The `user` of a kubeconfig: somebody of that name and group, with files or with the certificate inside."""
        pair = self.authority.issue(name, organisation=group)
        if not inline:
            return dict(zip(("client-certificate", "client-key"), map(str, pair)))
        encoded = [base64.b64encode(one.read_bytes()).decode() for one in pair]
        return dict(zip(("client-certificate-data", "client-key-data"), encoded))

    def sign_token(self, namespace: str, account: str, *, seconds: int) -> str:
        """A token of a service account that is there, with any life time: -120 has expired, -30 is still let pass."""
        uid = self.client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}")["metadata"]["uid"]
        now = int(time.time())
        claims = {
            "iss": _ISSUER,
            "aud": [_ISSUER],
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "iat": now + min(seconds, 0) - 1,
            "nbf": now + min(seconds, 0) - 1,
            "exp": now + seconds,
            "jti": secrets.token_hex(16),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }
        signed = ".".join(_b64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        sign = ["openssl", "dgst", "-sha256", "-sign", str(self._key)]
        signature = subprocess.run(sign, input=signed.encode(), capture_output=True, check=True).stdout
        return f"{signed}.{_b64url(signature)}"

    def log(self) -> str:
        return self.daemon.log()

    def _server_words(self, program: str, rbac: bool, more: tuple[str, ...]) -> list[str]:
        hosts = f"IP:127.0.0.1,IP:::1,IP:{self.address},DNS:localhost,DNS:kubernetes.default.svc"
        cert, key = self.authority.issue("kube-apiserver", hosts)
        options = {
            "etcd-servers": self.etcd.url,
            "bind-address": self.address,
            "advertise-address": "127.0.0.1",  # of the family of service addresses; nobody reads it
            "endpoint-reconciler-type": "none",  # it would refuse to publish a loopback address
            "secure-port": self.port,
            "cert-dir": self._folder,
            "tls-cert-file": cert,
            "tls-private-key-file": key,
            "client-ca-file": self.authority.ca,
            "service-account-key-file": self._key,
            "service-account-signing-key-file": self._key,
            "service-account-issuer": _ISSUER,
            "service-cluster-ip-range": "10.101.0.0/16",
            "authorization-mode": "RBAC" if rbac else "AlwaysAllow",
            # Tests are no reason to be slowed down, and measure what they cause themselves.
            "enable-priority-and-fairness": "false",
            "max-requests-inflight": 0,
            "max-mutating-requests-inflight": 0,
            "profiling": "false",
        }
        if not self.accounts:  # else pods would be refused for want of an account that only the controllers make
            options["disable-admission-plugins"] = "ServiceAccount"
        return [program, *[f"--{name}={value}" for name, value in options.items()], *more]

    def _controller_words(self, program: str, more: Object) -> list[str]:
        config = self.kubeconfig(self._folder / "controllers.kubeconfig")
        options = {
            "kubeconfig": config,
            "controllers": _CONTROLLERS,
            "service-account-private-key-file": self._key,
            "root-ca-file": self.authority.ca,
            "leader-elect": "false",
            "secure-port": 0,
        } | more
        return [program, *[f"--{name}={value}" for name, value in options.items()]]

    def _is_ready(self) -> bool:
        """All hooks have run, and the namespaces that are always there are there."""
        try:
            self.client.get("/readyz")
            return all(self.client.find(f"/api/v1/namespaces/{name}") for name in ("default", "kube-system"))
        except (OSError, Refused):
            return False

    def _has_accounts(self) -> bool:
        return self.client.find("/api/v1/namespaces/default/serviceaccounts/default") is not None


@contextmanager
def shared_apiserver(*, controller_manager: bool = False) -> Iterator[KubernetesServer]:
    """A server for tests that only need one: the one that is named, else one of our own.

    A named server must have no object of Calico's when nothing else in this process uses it, so that nobody's
    cluster is lost by a wrong variable.
    """
    named = os.environ.get("TORTIE_TEST_KUBECONFIG", "")
    if not named:
        with ApiServer(controller_manager=controller_manager) as own:
            yield own
        return
    with from_kubeconfig(Path(named)) as server:
        if not _USERS[server.url] and (found := server.cluster.calico()):
            raise RuntimeError(
                f"TORTIE_TEST_KUBECONFIG: {server.url} has {len(found)} objects of Calico's. Tests would delete them"
            )
        _USERS[server.url] += 1
        try:
            yield server
        finally:
            server.cluster.clear()
            _USERS[server.url] -= 1


def _folder() -> Path | None:
    """Where memory is a file system, if anywhere; else the usual place for temporary files."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) else None


def _b64url(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()
