"""What else a Windows host is asked for: locks, files, programs, the registry, interfaces. Windows is a fake here."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from adapters.plugin_path import is_this_program
from adapters.windows.deletion_stamps import KEY, RegistryStamps
from adapters.windows.host_interfaces import PowerShellInterfaces
from adapters.windows.lock import WindowsLock
from adapters.windows.memory_host import MemoryMutex
from adapters.windows.mutex import NamedMutex
from adapters.windows.node import WindowsNode
from adapters.windows.plugin_exec import WindowsIpamPlugin
from adapters.windows.plugin_path import find_plugin
from adapters.windows.powershell import PowerShell
from adapters.windows.process import WindowsCommand, run
from contracts.lock import LockContract
from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import Request
from domain.ipam.address import Address, Cidr
from ports.errors import BadConfiguration, Expired, Refused, Unavailable
from ports.ipam_plugin import IpamCall
from ports.node import MissingFile
from services.windows_locking import Msvcrt

ADDRESS = Address.parse("10.11.128.13")


class TestWindowsLock(LockContract):
    @pytest.fixture
    def clock(self):
        return SystemClock()

    @pytest.fixture
    def path(self, tmp_path: Path):
        return str(tmp_path / "new" / "ipam.lock")

    @pytest.fixture
    def lock(self, path, clock):
        return WindowsLock(path, clock, RecordingLog(), Msvcrt)

    def test_it_has_no_notes(self, lock, clock):
        with lock.held(clock.deadline(1)):
            lock.leave("notes\n")
        assert lock.notes() is None

    @pytest.fixture
    def rival(self, path, clock):
        return WindowsLock(path, clock, RecordingLog(), Msvcrt)


def test_a_folder_is_no_lock(tmp_path):
    clock, log = MemoryClock(), RecordingLog()
    lock = WindowsLock(str(tmp_path), clock, log, Msvcrt)
    with lock.held(clock.deadline(1)) as really:
        assert not really
    with pytest.raises(BadConfiguration, match="it is a folder"), lock.held(clock.deadline(1), strict=True):
        pass


def test_a_lock_that_cannot_be_made_is_gone_without(tmp_path):
    clock, log = MemoryClock(), RecordingLog()
    (tmp_path / "file").write_text("")
    lock = WindowsLock(str(tmp_path / "file" / "ipam.lock"), clock, log, Msvcrt)
    with lock.held(clock.deadline(1)) as really:
        assert not really
    assert len(log.shown("warning")) == 1


def test_a_container_is_kept_by_a_mutex_of_its_name():
    names, mutex, clock = [], MemoryMutex(), MemoryClock()
    lock = WindowsLock("", clock, RecordingLog(), Msvcrt, lambda name: names.append(name) or mutex)
    assert lock.path == r"c:\CalicoWindows\ipam.lock"
    assert lock.keep("8e9a1c32", clock.deadline(1))
    assert lock.keep("8e9a1c32", clock.deadline(1))
    assert (names, mutex.is_held) == (["TortieContainer-8e9a1c32"], True)
    assert not lock.keep("none", clock.deadline(1)), "all sandboxes of dockershim have it"
    mutex.by_others = True
    assert not lock.keep("other", clock.deadline(1))


class Kernel32:
    """`answers` are those of WaitForSingleObject; `said` what was called."""

    def __init__(self, *answers: int, handle: int = 7) -> None:
        self.answers, self.handle, self.said = list(answers), handle, []

    def CreateMutexW(self, attributes, owner, name):  # noqa: N802 - its name
        self.said.append(name)
        return self.handle

    def WaitForSingleObject(self, handle, milliseconds):  # noqa: N802 - its name
        assert (handle, milliseconds) == (7, 50)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def ReleaseMutex(self, _handle):  # noqa: N802 - its name
        self.said.append("released")

    def CloseHandle(self, _handle):  # noqa: N802 - its name
        self.said.append("closed")


@pytest.mark.parametrize("had", [0x0, 0x80])
def test_the_originals_mutex_is_waited_for(had):
    """Also one whose holder has died."""
    clock, kernel = MemoryClock(), Kernel32(0x102, had)
    with NamedMutex(clock, kernel32=kernel).held(clock.deadline(100)):
        assert kernel.said == ["TigeraCalicoCNINetworkMutex"]
    assert kernel.said[1:] == ["released", "closed"]


@pytest.mark.parametrize(
    ("kernel", "error"),
    [(Kernel32(0x102), Expired), (Kernel32(0xFFFFFFFF), Refused), (Kernel32(0, handle=0), Refused)],
)
def test_a_mutex_that_is_not_to_be_had(kernel, error):
    clock = MemoryClock()
    with (
        pytest.raises(error, match="TigeraCalicoCNINetworkMutex"),
        NamedMutex(clock, kernel32=kernel).held(clock.deadline(0)),
    ):
        pass
    assert kernel.said[1:] == (["closed"] if kernel.handle else [])


def test_a_nodes_files(tmp_path):
    node, path = WindowsNode(), str(tmp_path / "new" / "nodename")
    with pytest.raises(MissingFile):
        node.read(path)
    assert not node.exists(path)
    for text in ("win-1", "win-2 é"):
        node.write(path, text)
        assert (node.read(path), node.exists(path)) == (text, True)
    assert os.listdir(tmp_path / "new") == ["nodename"]
    with pytest.raises(Refused, match="open "):
        node.read(str(tmp_path))
    with pytest.raises(Unavailable):
        node.write(f"{path}/below", "x")
    for _ in range(2):
        node.remove(path)
    with pytest.raises(Unavailable):
        node.remove(str(tmp_path / "new"))
    with pytest.raises(Unavailable, match="invalid argument"):
        node.write("a\0b", "x")


def test_a_node_tells_little_of_its_network():
    node = WindowsNode()
    assert (node.addresses(), node.host_routes(), node.interface_of(ADDRESS)) == ((), (), "")
    assert not node.is_own_namespace("8e9a1c32")
    assert node.host_name() == os.uname().nodename


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_plugins_are_programs_that_end_in_exe(tmp_path):
    """Folders are separated by semicolons, and a drive has a colon, at which CNI_PATH has been split."""
    first, second = tmp_path / "c:first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "host-local").write_text("")
    (second / "calico-ipam.exe").write_text("")
    (second / "calico-ipam").write_text("")
    path = tuple(f"{first};;{second}".split(":"))
    assert find_plugin("host-local", path) == f"{first}/host-local"
    assert find_plugin("calico-ipam", path) == f"{second}/calico-ipam.exe"
    for type, why in {
        "": "no plugin name provided",
        "a/b": "invalid plugin name: a/b",
        "a\\b": r"invalid plugin name: a\\b",
        "absent": f'failed to find plugin "absent" in path [{first} {second}]'.replace("[", r"\["),
        "nul\0": "failed to find plugin",
    }.items():
        with pytest.raises(Refused, match=why):
            find_plugin(type, path)
    with pytest.raises(Refused, match="no paths provided"):
        find_plugin("x", ("",))


def test_copies_with_one_build_stamp_are_this_program(tmp_path):
    own, copy, other, old = (tmp_path / name for name in ("calico.exe", "copy.exe", "other.exe", "old.exe"))
    for path, stamp in ((own, "1"), (copy, "1"), (other, "2"), (old, "10")):
        path.write_text(f"{'x' * 300}\n# build-stamp: {stamp}\n")
    assert is_this_program(str(own), str(own))
    assert is_this_program(str(copy), str(own))
    assert not is_this_program(str(other), str(own))
    assert not is_this_program(str(old), str(own))
    assert not is_this_program(str(tmp_path / "absent"), str(own))


def ipam_call(folder: Path) -> IpamCall:
    netconf = NetConf(name="n", cni_version="1.0.0", ipam=IpamSettings(type="other"))
    return IpamCall(Request("ADD", "c1", "8e9a1c32", "eth0", "", (str(folder),)), netconf, '{"the":"text"}')


def test_a_plugin_is_run(tmp_path):
    answer = '{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.7/26"}]}'
    script(
        tmp_path / "other.exe",
        'assert sys.stdin.read() == \'{"the":"text"}\'\n'
        "assert (os.environ['CNI_COMMAND'], os.environ['CNI_CONTAINERID'], os.environ['X']) == ('ADD', 'c1', 'y')\n"
        f"print('{answer}')\n",
    )
    clock = SystemClock()
    plugin = WindowsIpamPlugin({"X": "y"}, clock, RecordingLog())
    result = plugin.add(ipam_call(tmp_path), clock.deadline(20))
    assert [str(ip.address) for ip in result.ips] == ["10.0.0.7/26"]


@pytest.mark.parametrize(
    ("text", "why", "code"),
    [
        ('print(\'{"code": 11, "msg": "later"}\'); sys.exit(1)', "later", 11),
        ("sys.exit(3)", "netplugin failed with no error message: exit status 3", 0),
    ],
)
def test_a_plugin_says_no(tmp_path, text, why, code):
    script(tmp_path / "other.exe", text)
    clock = SystemClock()
    with pytest.raises(Refused) as refused:
        WindowsIpamPlugin({}, clock, RecordingLog()).delete(ipam_call(tmp_path), clock.deadline(20))
    assert (str(refused.value), refused.value.code) == (why, code)


def test_a_plugin_that_cannot_be_started(tmp_path):
    (tmp_path / "other.exe").write_text("no program")
    clock = SystemClock()
    with pytest.raises(Refused, match="netplugin failed with no error message: fork/exec"):
        WindowsIpamPlugin({}, clock, RecordingLog()).add(ipam_call(tmp_path), clock.deadline(20))


def test_a_program_ends_with_its_deadline():
    clock = SystemClock()
    command = WindowsCommand((sys.executable, "-c", "import time; time.sleep(60)"), "a sleeper")
    with pytest.raises(Expired, match="a sleeper"):
        run(command, clock.deadline(0.2), clock)
    with pytest.raises(Expired, match="a sleeper"):
        run(command, clock.deadline(0), clock)


def test_powershell(tmp_path):
    """A command stops at its first error, whose text is told."""
    clock = SystemClock()
    program = script(
        tmp_path / "ps", "print(sys.argv[-1]); sys.stderr.write('denied\\n'); sys.exit('exit' in sys.argv[-1])"
    )
    shell = PowerShell(clock, (program, "-Command"))
    assert shell.run("Get-X", clock.deadline(20)) == "$ErrorActionPreference = 'Stop'; Get-X\n"
    with pytest.raises(Refused, match=r"^PowerShell \(exit 1\): denied$"):
        shell.run("exit 1", clock.deadline(20))
    with pytest.raises(Refused, match="cannot run nowhere"):
        PowerShell(clock, ("nowhere",)).run("Get-X", clock.deadline(20))
    silent = script(tmp_path / "silent", "sys.exit(2)")
    with pytest.raises(Refused, match="exit status 2"):
        PowerShell(clock, (silent,)).run("Get-X", clock.deadline(20))


def test_interfaces_are_found_by_their_addresses():
    clock, asked, answers = MemoryClock(), [], {"PrefixLength": "19\r\n", "MacAddress": "00-15-5D-01-02-03\r\n"}

    def answer(command, _deadline):
        asked.append(command)
        return next((text for what, text in answers.items() if command.endswith(what)), "")

    interfaces, soon = PowerShellInterfaces(answer), clock.deadline(1)
    assert interfaces.subnet_of(ADDRESS, soon) == Cidr.parse("10.11.128.13/19")
    assert interfaces.mac_of(ADDRESS, soon) == "00:15:5d:01:02:03"
    interfaces.enable_forwarding((ADDRESS, Address.parse("10.9.0.2")), soon)
    find = "Get-NetIPAddress -AddressFamily IPv4 -IPAddress"
    switch = "Set-NetIPInterface -AddressFamily IPv4 -Forwarding Enabled -InterfaceIndex"
    assert asked == [
        f"({find} 10.11.128.13).PrefixLength",
        f"(Get-NetAdapter -InterfaceIndex ({find} 10.11.128.13).InterfaceIndex).MacAddress",
        f"{switch} ({find} 10.11.128.13).InterfaceIndex; {switch} ({find} 10.9.0.2).InterfaceIndex",
    ]
    answers.clear()
    for ask in (interfaces.subnet_of, interfaces.mac_of):
        with pytest.raises(Refused, match=r"couldn't find an interface matching management IP 10\.11\.128\.13"):
            ask(ADDRESS, soon)


class Registry:
    """`winreg` over a dict: of the module as much as is used."""

    HKEY_LOCAL_MACHINE, REG_SZ, KEY_SET_VALUE = "HKLM", 1, 2

    def __init__(self) -> None:
        self.values: dict[str, str] | None = None
        self.denied = False

    def __enter__(self):
        return self

    def __exit__(self, *_ended: object) -> None:
        pass

    def OpenKey(self, root, key, *_more):  # noqa: N802 - its name
        self._check(root, key)
        if self.values is None:
            raise FileNotFoundError(2, "not found")
        return self

    def CreateKey(self, root, key):  # noqa: N802 - its name
        self._check(root, key)
        self.values = self.values or {}
        return self

    def _check(self, root, key):
        assert (root, key) == ("HKLM", KEY)
        if self.denied:
            raise PermissionError(13, "Access is denied")

    def QueryInfoKey(self, _key):  # noqa: N802 - its name
        return 0, len(self.values), 0

    def EnumValue(self, _key, at):  # noqa: N802 - its name
        return (*list(self.values.items())[at], 1)

    def SetValueEx(self, _key, name, _reserved, kind, value):  # noqa: N802 - its name
        assert kind == self.REG_SZ
        self.values[name] = value

    def DeleteValue(self, _key, name):  # noqa: N802 - its name
        if self.values.pop(name, None) is None:
            raise FileNotFoundError(2, "not found")


def test_deletions_are_in_the_registry():
    """WFV-016"""
    registry = Registry()
    stamps = RegistryStamps(registry)
    stamps.remove("c1")
    assert stamps.all() == {}
    stamps.write("c1", "2026-11-30T15:00:00Z")
    stamps.write("c2", "2026-11-30T15:00:01Z")
    stamps.remove("c2")
    stamps.remove("c2")
    assert stamps.all() == registry.values == {"c1": "2026-11-30T15:00:00Z"}
    registry.denied = True
    for ask in (stamps.all, lambda: stamps.write("c3", "x"), lambda: stamps.remove("c1")):
        with pytest.raises(Refused, match=r"^registry key HKLM.*: Access is denied$"):
            ask()
