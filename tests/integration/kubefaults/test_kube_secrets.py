"""Tokens, keys and passwords reach the API server and nothing else: no output, no log, no program's arguments.

Invariant: whatever a call ends with, at the most talkative log level, what was planted is found in the requests only.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.faults.test_etcd_outages import Gate
from integration.kubefaults.kube_rig import KubeRig, KubeRigs
from integration.kubefaults.test_kube_credentials import expired_token
from integration.plugin.host import PLUGINS
from services.etcd import Authority
from services.kube_proxy import Action
from services.request_faults import answer, at, before, every, page, reset, status

PASSWORD = "p1anted-passw0rd"  # noqa: S105 - nobody's


def forms(secret: str) -> set[str]:
    """How a secret may be written; of a long one any part of some length tells too much."""
    inside = base64.b64encode(secret.encode()).decode().rstrip("=")
    parts = {secret[start : start + 40] for start in range(0, max(1, len(secret) - 40), 20)}
    return {secret, inside[:-2], *parts}


class Watch:
    """What is told about a call while and after it runs."""

    def __init__(self, rig: KubeRig, *secrets: str) -> None:
        self.rig = rig
        self.secrets = {one for secret in secrets for one in forms(secret)}
        self.told: list[tuple[str, str]] = []

    def call(self, verb: str, sandbox: Any, **more: Any) -> int:
        answer = self.rig.call(verb, sandbox, log_level="debug", **more)
        self.told += [("stdout", answer.stdout), ("stderr", answer.stderr)]
        return answer.exit

    def look_at_programs(self) -> None:
        """The arguments of all that run now, and the environment of what runs for us but is not the plugin."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                self.told.append((str(process), (process / "cmdline").read_bytes().decode(errors="replace")))
            except OSError:
                continue  # it has ended

    def nothing_leaked(self) -> None:
        log = self.rig.log
        assert log.stat().st_size > 0
        files = [log, *self.rig.folder.glob("**/*.lock")]
        self.told += [(str(path), path.read_text(errors="replace")) for path in files]
        leaks = [(where, secret) for where, text in self.told for secret in self.secrets if secret in text]
        assert leaks == []


def looking(watch: Watch) -> Action:
    """At each request: what runs, while the call is in the middle of it."""
    return before(watch.look_at_programs)


ENDS: dict[str, Action | None] = {
    "success": None,
    "refused": answer(401, status(401, "Unauthorized")),
    "forbidden": answer(403, status(403, "Forbidden")),
    "broken": answer(500, status(500, "InternalError")),
    "HTML": page(502),
    "reset": reset,
    "garbage": lambda exchange: exchange.send(b"SSH-2.0-OpenSSH\r\n\r\n"),
}


TRANSPORTS: dict[str, dict[str, str]] = {"lean": {}, "library": {"TORTIE_TRANSPORT": "library"}}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_token_is_told_to_nobody_however_a_call_ends(own_rigs: KubeRigs, transport: str) -> None:
    def attempt(rig: KubeRig, end: str) -> None:
        rig.more_environment = TRANSPORTS[transport]
        watch = Watch(rig, rig.served.token)
        sandbox = rig.pod()
        action = ENDS[end]
        rig.proxy.arm(every, action or looking(watch))
        added = watch.call("ADD", sandbox, timeout_seconds=10)
        assert (added == 0) == (action is None)
        assert all(asked.headers["authorization"] == f"Bearer {rig.served.token}" for asked in rig.proxy.asked)
        watch.call("DEL", sandbox)
        rig.proxy.forget()
        watch.call("DEL", sandbox)
        watch.nothing_leaked()
        rig.gone(sandbox)

    own_rigs.each(list(ENDS), attempt)


# --- other ways to have secrets -------------------------------------------------------------------------------------


def inline_certificate(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    """Of somebody whom the server does not know."""
    authority = Authority(rig.folder / "strange", "strangers")
    pair = [path.read_bytes() for path in authority.issue("somebody")]
    data = [base64.b64encode(pem).decode() for pem in pair]
    user = {"client-certificate-data": data[0], "client-key-data": data[1]}
    key = "".join(line for line in pair[1].decode().splitlines() if not line.startswith("-"))
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", user=user)}, [key]


def password(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    user = {"username": "somebody", "password": PASSWORD}
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", user=user)}, [PASSWORD]


def password_in_the_url(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    server = rig.proxy.url.replace("https://", f"https://somebody:{PASSWORD}@")
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", user={}, server=server)}, [PASSWORD]


def proxy_with_a_password(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    url = f"http://somebody:{PASSWORD}@127.0.0.1:1"
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", token="t", proxy_url=url)}, [PASSWORD]  # noqa: S106 - made up


def exec_plugin(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    """Its arguments and variables may be secret too; that it has arguments is for who configured them to answer for."""
    token = expired_token(rig)
    path = rig.folder / "give"
    given = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    path.write_text(f"#!/bin/sh\necho \"$SECRET\" >&2\necho '{json.dumps(given)}'\n")
    path.chmod(0o700)
    variables = [{"name": "SECRET", "value": PASSWORD}]
    plugin = {"apiVersion": given["apiVersion"], "command": str(path), "interactiveMode": "Never", "env": variables}
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", user={"exec": plugin})}, [token]


def exec_plugin_that_answers_nonsense(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    path = rig.folder / "give"
    path.write_text(f"#!/bin/sh\necho '{PASSWORD}'\nexit 0\n")
    path.chmod(0o700)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", user={"exec": plugin})}, [PASSWORD]


def broken_yaml(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    path = rig.folder / "k"
    path.write_text(f"apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    token: {PASSWORD}\n   bad: [\n")
    return {"kubeconfig": path}, [PASSWORD]


def token_with_a_line_break(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    return {"kubeconfig": rig.proxy.kubeconfig(rig.folder / "k", token=f"{PASSWORD}\nX-Injected: yes")}, [PASSWORD]


def token_of_the_policy(rig: KubeRig) -> tuple[dict[str, Any], list[str]]:
    """In the configuration itself, which IPAM plugins get as well."""
    token = expired_token(rig)
    return {"policy": {"type": "k8s", "k8s_auth_token": token}, "kubeconfig": rig.folder / "kubeconfig"}, [token]


SECRETS: dict[str, Callable[[KubeRig], tuple[dict[str, Any], list[str]]]] = {
    made.__name__.replace("_", " "): made
    for made in (
        inline_certificate,
        password,
        password_in_the_url,
        proxy_with_a_password,
        exec_plugin,
        exec_plugin_that_answers_nonsense,
        broken_yaml,
        token_with_a_line_break,
        token_of_the_policy,
    )
}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_other_secrets_are_told_to_nobody_when_they_do_not_help(own_rigs: KubeRigs, transport: str) -> None:
    def attempt(rig: KubeRig, name: str) -> None:
        rig.more_environment = TRANSPORTS[transport]
        more, secrets = SECRETS[name](rig)
        watch = Watch(rig, *secrets)
        rig.proxy.arm(every, looking(watch))
        netconf = {"kubernetes": {"kubeconfig": str(more.pop("kubeconfig"))}, **more}
        sandbox = rig.pod()
        assert watch.call("ADD", sandbox, **netconf) == 1
        watch.call("DEL", sandbox, **netconf)
        watch.nothing_leaked()
        assert sandbox.inside.names() == {"lo"}

    own_rigs.each(list(SECRETS), attempt)


def test_an_ipam_plugin_gets_no_token_in_its_arguments_or_environment(v1: KubeRig) -> None:
    """Another program than ours: it gets the configuration on stdin, as every IPAM plugin does."""
    spy, seen = v1.folder / "plugins", v1.folder / "seen"
    spy.mkdir()
    program = spy / "host-local"
    program.write_text(f'#!/bin/sh\n(tr "\\0" "\\n" </proc/$$/cmdline; env) >>{seen}\nexec {PLUGINS}/host-local\n')
    program.chmod(0o700)
    ipam = {"type": "host-local", "subnet": "10.0.0.0/8", "dataDir": str(v1.folder / "networks")}
    v1.more_environment = {"CNI_PATH": f"{spy}:{v1.bin}"}
    watch = Watch(v1, v1.served.token)
    sandbox = v1.pod()
    assert watch.call("ADD", sandbox, ipam=ipam) == 0
    assert watch.call("DEL", sandbox, ipam=ipam) == 0
    told = seen.read_text()
    assert "CNI_COMMAND=ADD" in told
    watch.told.append(("the IPAM plugin", told))
    watch.nothing_leaked()


def test_nobody_else_can_read_a_token_while_a_call_runs(v1: KubeRig) -> None:
    """No file of the call's holds it: descriptors of the process are its pipes, its sockets, its lock and its log."""
    watch = Watch(v1, v1.served.token)
    sandbox = v1.pod()
    gate = Gate()
    v1.proxy.arm(at("PATCH", "/pods"), before(gate.pass_through), times=1)
    process = v1.start(v1.environment("ADD", sandbox))
    assert process.stdin
    process.stdin.write(json.dumps(v1.netconf(log_level="debug")).encode())
    process.stdin.close()
    process.stdin = None
    gate.wait(1)
    files = {link.resolve() for link in Path(f"/proc/{process.pid}/fd").iterdir()}
    regular = [path for path in files if path.is_file() and not path.is_relative_to("/run")]  # those are namespaces
    environment = Path(f"/proc/{process.pid}/environ").read_bytes().decode(errors="replace")
    watch.look_at_programs()
    gate.opened.set()
    out, err = process.communicate(timeout=60)
    watch.told += [("stdout", out.decode()), ("stderr", err.decode()), ("environment", environment)]
    watch.told += [(str(path), path.read_text(errors="replace")) for path in regular]
    watch.nothing_leaked()
    assert process.returncode == 0
