"""The plugins with `datastore_type: etcdv3`, as users reported it: certificates, dead endpoints, black holes, users."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from integration.plugin.host import Host
from integration.plugin.replay import recording
from integration.plugin.store import EtcdRecords, cluster_records
from patience import TRIES, at_best
from services.etcd import Authority, Etcd
from services.tcp_proxy import TcpProxy

START = 20  # seconds that a busy machine may need to start a program
BAD_CONFIGURATION, TRY_AGAIN_LATER = 7, 11
PORT = 23790
URL = f"http://127.0.0.1:{PORT}"
NOBODY = "http://127.0.0.1:1"
PROGRAMS = ["calico", "calico-ipam"]


@pytest.fixture(scope="module")
def plain() -> Iterator[Etcd]:
    with Etcd() as etcd:
        yield etcd


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: Authority) -> Iterator[Etcd]:
    with Etcd(tls=authority) as etcd:
        yield etcd


@pytest.fixture
def on(binaries: Path, tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """A host that reaches an etcd at the recorded port, with one pool."""
    with ExitStack() as undo:

        def on(etcd: Etcd, **settings: Any) -> Host:
            host = Host(binaries, tmp_path, undo)
            undo.enter_context(TcpProxy(etcd.port, netns=host.net.path, port=PORT))
            host.store = EtcdRecords(etcd, PORT)
            host.store.settings |= {key: str(value) for key, value in settings.items()}
            host.store.create(cluster_records("10.20.0.0/24"))
            return host

        yield on


def black_hole(host: Host) -> str:
    """An address of the host's network where every packet is lost."""
    host.net.ip("link", "add", "dark0", "type", "veth", "peer", "name", "dark1")
    host.net.ip("addr", "add", "10.99.0.1/24", "dev", "dark0")
    for end in ("dark0", "dark1"):
        host.net.ip("link", "set", end, "up")
    host.net.ip("neigh", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:99", "dev", "dark0")
    return "http://10.99.0.2:2379"


# --- the connection test --------------------------------------------------------------------------------------------


def test_cni_034_035_the_connection_test_answers_as_recorded(plain: Etcd, on: Callable[..., Host]) -> None:
    """CNI-034, CNI-035, with the recorded configurations as they are; the log says whom it waited for."""
    host = on(plain)
    for step in recording("connection-test")["steps"]:
        call = step["call"]
        answer = host.connection_test(call["stdin"], tries=TRIES if call["exit"] == 0 else 1)
        assert (answer.exit, answer.stdout) == (call["exit"], call["stdout"])
    assert f"{NOBODY}: " in answer.stderr
    assert "refused" in answer.stderr


def test_cni_035_the_connection_test_takes_no_longer_than_its_two_seconds(plain: Etcd, on: Callable[..., Host]) -> None:
    host = on(plain)
    for endpoint in ("http://127.0.0.1:2370", black_hole(host)):
        began = time.monotonic()
        netconf = json.dumps(host.netconf(etcd_endpoints=endpoint))
        host.raw({"CNI_COMMAND": "VERSION"}, netconf, "-t").error(100, "context deadline exceeded")
        assert time.monotonic() - began < 2 + START


def test_a_wrong_authority_is_told_by_the_connection_test_at_once(secure: Etcd, on: Callable[..., Host]) -> None:
    host = on(secure, etcd_endpoints=f"https://127.0.0.1:{PORT}")
    answer = host.raw({"CNI_COMMAND": "VERSION"}, json.dumps(host.netconf()), "-t")
    answer.error(100, "error getting ClusterInformation", "certificate problem", f"https://127.0.0.1:{PORT}")


# --- certificates and users -----------------------------------------------------------------------------------------


def tls_settings(authority: Authority, etcd: Etcd) -> dict[str, Any]:
    files = {"etcd_ca_cert_file": authority.ca, "etcd_cert_file": etcd.cert, "etcd_key_file": etcd.key}
    return {"etcd_endpoints": f"https://127.0.0.1:{PORT}", **files}


def test_client_certificates(secure: Etcd, authority: Authority, on: Callable[..., Host]) -> None:
    host = on(secure, **tls_settings(authority, secure))
    container = host.container()
    host.add(container).result()
    assert len(host.store.endpoints()) == 1
    host.delete(container).silent()
    assert host.left() == {}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("verb", ["ADD", "DEL"])
def test_c16_a_file_that_is_not_there_is_told_at_once(
    secure: Etcd, authority: Authority, on: Callable[..., Host], program: str, verb: str
) -> None:
    host = on(secure, **tls_settings(authority, secure))
    for setting in ("etcd_ca_cert_file", "etcd_cert_file", "etcd_key_file"):
        began = time.monotonic()
        answer = host.call(verb, host.container(), program=program, **{setting: "/nope"})
        # A DEL is told to come again: what is in the datastore stays until it can be reached.
        code = TRY_AGAIN_LATER if verb == "DEL" else BAD_CONFIGURATION
        answer.error(code, f"{setting} /nope: No such file or directory")
        assert time.monotonic() - began < START
    assert host.left() == {}


def test_c16_settings_that_an_installer_left_empty_are_absent(plain: Etcd, on: Callable[..., Host]) -> None:
    host = on(plain)
    empty = {"etcd_ca_cert_file": "", "etcd_cert_file": "", "etcd_key_file": "", "etcd_discovery_srv": ""}
    host.add(host.container(), **empty).result()


@pytest.mark.parametrize("program", PROGRAMS)
def test_c16_a_wrong_authority_is_called_a_certificate_problem(
    secure: Etcd, authority: Authority, on: Callable[..., Host], tmp_path: Path, program: str
) -> None:
    other = Authority(tmp_path / "other", "another authority")
    host = on(secure, **tls_settings(authority, secure))
    for verb in ("ADD", "DEL"):
        began = time.monotonic()
        answer = host.call(verb, host.container(), program=program, etcd_ca_cert_file=str(other.ca))
        answer.error(TRY_AGAIN_LATER, "certificate problem", f"https://127.0.0.1:{PORT}")
        assert time.monotonic() - began < START
    assert host.left() == {}


def test_a_user_and_a_password_from_the_environment(on: Callable[..., Host]) -> None:
    with Etcd() as etcd:
        host = on(etcd)
        etcd.require_users(root="r00t", calico="planted-secret")
        container = host.container()
        environment = host.environment("ADD", container)
        netconf = json.dumps(host.netconf())
        refused = host.raw(environment, netconf)
        refused.error(999, "connection is unauthorized", URL)
        wrong = {"ETCD_USERNAME": "calico", "ETCD_PASSWORD": "planted-mistake"}
        answer = host.raw(environment | wrong, netconf)
        answer.error(999, "connection is unauthorized", URL)
        assert "planted" not in answer.stdout + answer.stderr + host.log.read_text()
        right = {"ETCD_USERNAME": "calico", "CALICO_ETCD_PASSWORD": "planted-secret"}
        host.raw(environment | right, netconf).result()
        host.raw(environment | right | {"CNI_COMMAND": "DEL"}, netconf).silent()
        assert "planted" not in host.log.read_text()
        assert host.left() == {}


# --- endpoints ------------------------------------------------------------------------------------------------------


def test_etcd_is_the_choice_where_endpoints_are_given(plain: Etcd, on: Callable[..., Host]) -> None:
    host = on(plain)
    container = host.container()
    host.add(container, datastore_type=None).result()
    host.delete(container, datastore_type=None).silent()
    assert host.left() == {}


def test_a_prefixed_variable_beats_the_configuration(plain: Etcd, on: Callable[..., Host]) -> None:
    host = on(plain)
    environment = host.environment("ADD", host.container(), CALICO_ETCD_ENDPOINTS=URL)
    host.raw(environment, json.dumps(host.netconf(etcd_endpoints=NOBODY))).result()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"etcd_endpoints": ""}, "no etcd endpoints specified"),
        (
            {"etcd_discovery_srv": "example"},
            'multiple discovery or bootstrap options specified, use either "etcdEndpoints" or "etcdDiscoverySrv"',
        ),
    ],
)
def test_settings_that_lead_nowhere_have_the_originals_words(
    plain: Etcd, on: Callable[..., Host], settings: dict[str, Any], expected: str
) -> None:
    host = on(plain)
    error = host.add(host.container(), **settings).error(999)
    assert error["msg"] == f"error creating calico client: {expected}"


@pytest.mark.parametrize(
    ("endpoints", "told"),
    [
        (f"{URL},https://127.0.0.1:1", "mixes http and https, and the first decides for all: http"),
        (f"{URL},http://127.0.0.1", "is not of the form http://HOST:PORT; going on with the other endpoints"),
        (URL.replace("://", "://me:planted@"), "holds a user name, which counts for nothing"),
    ],
)
def test_a_list_that_the_original_takes_is_taken_alike(
    plain: Etcd, on: Callable[..., Host], endpoints: str, told: str
) -> None:
    host = on(plain)
    container = host.container()
    for verb in ("ADD", "DEL"):
        answer = host.call(verb, container, etcd_endpoints=endpoints)
        assert answer.exit == 0, answer
        assert told in answer.stderr
        assert "planted" not in answer.stderr + answer.stdout
    assert host.left() == {}


@pytest.mark.parametrize("program", PROGRAMS)
def test_c16_a_dead_endpoint_costs_no_two_seconds(plain: Etcd, on: Callable[..., Host], program: str) -> None:
    host = on(plain)
    container = host.container()

    def seconds(verb: str, endpoints: str) -> float:
        began = time.monotonic()
        answer = host.call(verb, container, program=program, etcd_endpoints=endpoints)
        assert answer.exit == 0, answer
        return time.monotonic() - began

    usual = seconds("ADD", URL) + seconds("DEL", URL)
    for dead in (NOBODY, black_hole(host)):
        at_best(usual + 2 * 2, lambda dead=dead: (seconds("ADD", f"{dead},{URL}"), seconds("DEL", f"{dead},{URL}")))


# --- P04: nobody answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", ["packets lost", "silent from the start", "nobody listens"])
def test_p04_calls_end_in_time_with_code_11_and_the_endpoint(
    plain: Etcd, on: Callable[..., Host], program: str, case: str
) -> None:
    """ADD within what the configuration allows, DEL within ten seconds; DEL takes the device away all the same."""
    host = on(plain)
    container = host.container()
    host.add(container, program=program).result()
    with TcpProxy(plain.port, netns=host.net.path) as proxy:
        proxy.stalled.set()
        endpoint = {"packets lost": black_hole(host), "silent from the start": proxy.url, "nobody listens": NOBODY}[
            case
        ]
        for verb, bound in (("ADD", 3.0), ("DEL", 10.0)):
            began = time.monotonic()
            more = {"timeout_seconds": 3} if verb == "ADD" else {}
            subject = host.container() if verb == "ADD" else container
            answer = host.call(verb, subject, program=program, etcd_endpoints=endpoint, **more)
            answer.error(TRY_AGAIN_LATER, f"etcd {endpoint}")
            assert time.monotonic() - began < bound + START, verb
    left = host.left()
    assert "lock" not in left
    assert left.get("devices", set()) <= {"dark0", "dark1"}
    host.delete(container, program=program).silent()
    assert "allocated" not in host.left()


def test_p04_a_stall_in_the_middle_of_add_ends_in_time_and_is_taken_back(plain: Etcd, on: Callable[..., Host]) -> None:
    """The proxy stops after the first answers; the undoing finds a way once it goes on again."""
    host = on(plain)
    container = host.container()
    with TcpProxy(plain.port, netns=host.net.path) as proxy:
        host.store.settings["etcd_endpoints"] = proxy.url
        process = host.start(host.environment("ADD", container))
        assert process.stdin
        process.stdin.write(json.dumps(host.netconf(timeout_seconds=5)).encode())
        process.stdin.close()
        while not host.store.handles():
            assert process.poll() is None
        proxy.stalled.set()
        began = time.monotonic()
        time.sleep(5.5)
        proxy.stalled.clear()
        out = process.stdout.read() if process.stdout else b""
        assert process.wait(30) in {0, 1}
        assert time.monotonic() - began < 15 + START
        if process.returncode == 1:
            assert json.loads(out)["code"] == TRY_AGAIN_LATER
            assert proxy.url in out.decode()
            assert "allocated" not in host.left()
        host.delete(container).silent()
    assert host.left() == {}
