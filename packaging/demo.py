#!/usr/bin/env python3
"""`make demo`: two network namespaces, networked by the installed executables exactly as a container runtime would.

Everything it makes carries its process id and is gone at the end, also after a failure or an interrupt: links,
namespaces, the temporary folder with the installed files and the datastore, and the one kernel setting that it changes.

A host without a default route is left as it is (see demo_host.py).
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

import demo_host

ROOT = Path(__file__).resolve().parent.parent
POOLS = ("10.244.0.0/16", "fd00:10:244::/48")
NODE = f"demo-node-{os.getpid()}"
ONE_PING = ("-n", "-c", "1", "-W", "10")
COLOURED = sys.stdout.isatty()


class Failed(Exception):
    """The demo did not show what it promises."""


def paint(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOURED else text


def title(text: str) -> None:
    print(paint(f"\n{text}", "1;36"), flush=True)


def show(text: str) -> None:
    """Quote what a program said."""
    for line in text.rstrip().splitlines():
        print(f"    {line}", flush=True)


def good(text: str) -> None:
    print(f"  {paint('ok', '32')}  {text}", flush=True)


def must(holds: object, text: str) -> None:
    if not holds:
        raise Failed(text)
    good(text)


def run(*command: str | Path, env: dict[str, str] | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run to the end with that text on standard input; output captured, nothing raised."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60, env=env, input=given)


def succeed(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Run a command that must work; its output."""
    done = run(*command, env=env)
    if done.returncode != 0:
        raise Failed(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def command_line(text: str) -> None:
    print(paint(f"  $ {text}", "2"), flush=True)


class Container:
    """A network namespace and what a runtime knows about it."""

    def __init__(self, name: str, identity: str) -> None:
        self.name = name
        self.netns = f"tortie-demo-{os.getpid()}-{name}"
        self.identity = identity
        self.result: dict[str, object] = {}
        self.addresses: list[str] = []
        self.host_link = f"cali{identity[:11]}"

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Unlike `ip netns exec` this mounts nothing, so it works in containers and chroots too."""
        return run("nsenter", f"--net=/var/run/netns/{self.netns}", *command)


class Demo:
    def __init__(self, folder: Path, undo: ExitStack) -> None:
        self.folder = folder
        self.undo = undo
        self.bin = folder / "opt" / "cni" / "bin"
        self.database = folder / "datastore.db"
        self.containers = [Container(name, f"{name[0]}{os.getpid():010d}") for name in ("red", "blue")]

    # --- calling the product ----------------------------------------------------------------------------------------

    def netconf(self, **more: object) -> str:
        return json.dumps(
            {
                "cniVersion": "1.0.0",
                "name": "demo",
                "type": "calico",
                "datastore_type": "sqlite",
                "sqlite_path": str(self.database),
                "nodename": NODE,
                "nodename_file_optional": True,
                "log_file_path": str(self.folder / "cni.log"),
                "ipam_lock_file": str(self.folder / "ipam.lock"),
                "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"},
                **more,
            }
        )

    def call(self, verb: str, container: Container, **netconf: object) -> subprocess.CompletedProcess[str]:
        """One plugin call: the environment and standard input that a runtime gives, and nothing else."""
        environment = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": container.identity,
            "CNI_NETNS": f"/var/run/netns/{container.netns}",
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(self.bin),
        }
        command_line(
            f"CNI_COMMAND={verb} CNI_CONTAINERID={container.identity[:4]}… CNI_NETNS=…-{container.name} calico"
        )
        return run(self.bin / "calico", env=environment, given=self.netconf(**netconf))

    def tortie(self, *words: str) -> str:
        command_line(" ".join(("tortie", *words)))
        environment = {"TORTIE_SQLITE_PATH": str(self.database), "NODENAME": NODE}
        return succeed(self.bin / "tortie", *words, env=environment)

    # --- looking at the kernel --------------------------------------------------------------------------------------

    def traces_on_host(self) -> list[str]:
        """Links of ours, and routes and addresses that have to do with us, in whatever table."""
        own = [container.host_link for container in self.containers]
        own += [address for container in self.containers for address in container.addresses]
        lines = succeed("ip", "-o", "address").splitlines() + succeed("ip", "-o", "link").splitlines()
        for family in ("-4", "-6"):
            lines += succeed("ip", family, "route", "show", "table", "all").splitlines()
        return [line for line in lines if any(word in line for word in own)]

    def allocations(self) -> list[str]:
        """What IPAM's own records say is in use, read past the product: handles, and ordinals of blocks."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT key, text FROM records WHERE key LIKE '/calico/ipam/v2/%' ORDER BY key")
            records = {key.removeprefix("/calico/ipam/v2/"): json.loads(text) for key, text in rows}
        used = []
        for key, record in records.items():
            if key.startswith("handle/"):
                counts = (f"{count} in {cidr}" for cidr, count in record["block"].items())
                used.append(f"handle {key.partition('/')[2]}: {', '.join(counts)}")
        for record in records.values():
            taken = [ordinal for ordinal, index in enumerate(record.get("allocations", ())) if index is not None]
            used += [f"block {record['cidr']}: ordinals {taken}"] if taken else []
        return used

    def allow_forwarding(self) -> None:
        """Packets between two IPv6 containers pass the host only if it forwards at all; put every value back later."""
        switches = [Path("/proc/sys/net/ipv4/ip_forward"), Path("/proc/sys/net/ipv6/conf/all/forwarding")]
        kept = [*Path("/proc/sys/net").glob("ipv[46]/conf/*/forwarding")]
        for switch in switches:
            if not switch.exists() or switch.read_text().strip() == "1":
                continue
            family = switch.parts[4]
            before = {path: path.read_text() for path in kept if path.parts[4] == family}
            before = {switch: switch.read_text(), **before}
            self.undo.callback(restore, before)
            switch.write_text("1")

    # --- the story --------------------------------------------------------------------------------------------------

    def install(self) -> None:
        title("1. Install the executables into a temporary folder")
        command_line(f"make install DESTDIR={self.folder}")
        succeed("make", "-s", "-C", ROOT, "install", f"DESTDIR={self.folder}")
        show(succeed("ls", "-l", self.bin))

    def initialise(self) -> None:
        title("2. An embedded datastore: one file, no server")
        show(self.tortie("init", *(word for pool in POOLS for word in ("--pool", pool))))
        show(self.tortie("get", "ippools"))

    def make_namespaces(self) -> None:
        title("3. Two network namespaces, as a runtime makes them for two containers")
        self.allow_forwarding()
        for container in self.containers:
            command_line(f"ip netns add {container.netns}")
            self.undo.callback(run, "ip", "netns", "del", container.netns)
            succeed("ip", "netns", "add", container.netns)
            container.inside("ip", "link", "set", "lo", "up")

    def add(self) -> None:
        title("4. ADD: each container gets an interface and two addresses")
        for container in self.containers:
            self.undo.callback(self.delete_quietly, container)
            started = time.monotonic()
            done = self.call("ADD", container)
            took = time.monotonic() - started
            if done.returncode != 0:
                raise Failed(f"ADD failed: {done.stdout}\n{done.stderr}")
            container.result = json.loads(done.stdout)
            if container is self.containers[0]:
                show(done.stdout)
            container.addresses = [ip["address"].split("/")[0] for ip in json.loads(done.stdout)["ips"]]
            good(f"{container.name}: {' and '.join(container.addresses)} in {took * 1000:.0f} ms")

    def ping_all(self) -> None:
        title("5. They reach each other, and the host reaches them")
        red, blue = self.containers
        for source, target in ((red, blue), (blue, red)):
            for address in target.addresses:
                arrives(source.inside("ping", *ONE_PING, address), f"{source.name} → {target.name}  {address}")
        for target in self.containers:
            for address in target.addresses:
                arrives(run("ping", *ONE_PING, address), f"host → {target.name}  {address}")

    def look(self) -> None:
        title("6. What the datastore knows")
        for kind in ("workloadendpoints", "nodes"):
            show(self.tortie("get", kind, "-o", "wide"))
        print("  and IPAM's own records:", flush=True)
        show("\n".join(self.allocations()))

    def break_and_check(self) -> None:
        title("7. CHECK: silent while all is well, and it names what is not")
        red = self.containers[0]
        healthy = self.call("CHECK", red, prevResult=red.result)
        must(healthy.returncode == 0 and not healthy.stdout, "healthy: nothing to say")
        command_line("nsenter --net=…-red ip route del default   # break it")
        red.inside("ip", "route", "del", "default")
        broken = self.call("CHECK", red, prevResult=red.result)
        show(broken.stdout)
        must(broken.returncode != 0 and "0.0.0.0/0" in broken.stdout, "broken: CHECK names the missing route")

    def delete(self) -> None:
        title("8. DEL: nothing is left")
        for container in self.containers:
            done = self.call("DEL", container)
            must(done.returncode == 0 and not done.stdout, f"{container.name}: gone")
            left = [link["ifname"] for link in json.loads(container.inside("ip", "-j", "link").stdout)]
            must(set(left) <= {"lo", "tunl0", "ip6tnl0", "sit0", "gre0"}, f"{container.name}: no interface but lo")
            succeed("ip", "netns", "del", container.netns)
        left_on_host = self.traces_on_host()
        must(not left_on_host, f"host: no link, route or address of theirs {left_on_host or ''}".rstrip())
        namespaces = [name for name in os.listdir("/var/run/netns") if f"-{os.getpid()}-" in name]
        must(not namespaces, "host: no namespace of theirs")
        endpoints = json.loads(self.tortie("get", "workloadendpoints", "-o", "json"))
        must(not endpoints["items"], "datastore: no endpoint")
        must(not self.allocations(), "datastore: no address taken, no handle")

    def delete_quietly(self, container: Container) -> None:
        """Clean up after a failure, whatever state the container is in; a DEL of what is gone does nothing."""
        if Path(f"/var/run/netns/{container.netns}").exists():
            self.call("DEL", container)


def restore(settings: dict[Path, str]) -> None:
    for path, text in settings.items():
        if path.exists():
            path.write_text(text)


def arrives(pinged: subprocess.CompletedProcess[str], what: str) -> None:
    """A reply has come. If none has, a firewall of this machine may be the reason, which is worth saying."""
    if pinged.returncode != 0:
        hint = "does a firewall of this machine drop forwarded packets?"
        raise Failed(f"no reply: {what} ({hint})\n{pinged.stdout}{pinged.stderr}")
    times = [word.removeprefix("time=") for word in pinged.stdout.split() if word.startswith("time=")]
    good(f"{what}  {' '.join(times[:1])} ms")


def interrupted(number: int, _frame: object) -> None:
    raise Failed(f"interrupted by {signal.Signals(number).name}")


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    started = time.monotonic()
    if not demo_host.is_namespace():
        print(paint("tortie demo: two containers on this machine, networked by our own plugins", "1"), flush=True)
    try:
        fault = demo_host.settle(__file__)
        must(not fault, fault or "this host has a default route")
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="tortie-demo-")))
            demo = Demo(folder, undo)
            demo.install()
            demo.initialise()
            demo.make_namespaces()
            demo.add()
            demo.ping_all()
            demo.look()
            demo.break_and_check()
            demo.delete()
    except Failed as failure:
        print(paint(f"\nRESULT: the demo FAILED: {failure}", "1;31"), flush=True)
        return 1
    print(paint(f"\nRESULT: the demo passed in {time.monotonic() - started:.1f} s", "1;32"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
