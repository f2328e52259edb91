"""IPAM plugins as real processes: the contract, and that none outlives its call or us, whoever dies how."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.process import child as child_process
from adapters.linux.process.plugin_exec import ExecutedIpamPlugin
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from contracts.ipam_plugin import RESULT, IpamPluginContract, PluginWorld
from domain.cni.result import Result, result_text
from ports.errors import Expired, Refused

ROOT = Path(__file__).parents[3]

# A plugin that writes down each call and, file by file, what its test told it to do.
PLUGIN = """#!/bin/sh
cd {state} || exit 99
call=$$.$CNI_COMMAND
cat > stdin.$call
echo "$call" >> calls
[ -e takes ] && exec sleep "$(cat takes)"
[ -e fails.$CNI_COMMAND ] && {{ cat fails.$CNI_COMMAND; exit 1; }}
case $CNI_COMMAND in
ADD) : > holds.$CNI_CONTAINERID; cat answer;;
DEL) rm -f holds.$CNI_CONTAINERID;;
esac
"""


class ExecutedWorld(PluginWorld):
    def __init__(self, directory: Path) -> None:
        self.clock = SystemClock()
        self.bin, self._state = directory / "bin", directory / "state"
        self.bin.mkdir()
        self._state.mkdir()
        self.path = (str(self.bin),)
        self.environment = {"PATH": os.environ["PATH"], "CNI_COMMAND": "ADD", "KEPT": "as it is"}
        self.log = RecordingLog()
        self.plugin: ExecutedIpamPlugin = ExecutedIpamPlugin(self.environment, self.clock, self.log)

    def install(self, type: str, program: str) -> Path:
        path = self.bin / type
        path.write_text(program)
        path.chmod(0o755)
        return path

    def answers(self, type: str, result: Result) -> None:
        self.install(type, PLUGIN.format(state=shlex.quote(str(self._state))))
        (self._state / "answer").write_text(result_text(result, "1.0.0"))

    def fails(self, type: str, verb: str, code: int, message: str, details: str) -> None:
        text = f'{{"code":{code},"msg":"{message}","details":"{details}"}}'
        (self._state / f"fails.{verb}").write_text(text)

    def takes(self, type: str, seconds: float) -> None:
        (self._state / "takes").write_text(str(seconds))

    def calls(self) -> list[tuple[str, str]]:
        names = (self._state / "calls").read_text().split()
        return [(name.partition(".")[2], (self._state / f"stdin.{name}").read_text()) for name in names]

    def holds(self, container_id: str) -> bool:
        return (self._state / f"holds.{container_id}").exists()

    def add(self, type: str = "plugin", seconds: float = 20) -> Result:
        return self.plugin.add(self.call(type), self.clock.deadline(seconds))

    def refusal(self, program: str) -> Refused:
        self.install("plugin", program)
        with pytest.raises(Refused) as refused:
            self.add()
        return refused.value


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ExecutedWorld]:
    descriptors, children = set(os.listdir("/proc/self/fd")), own_children()
    yield ExecutedWorld(tmp_path)
    # What earlier tests have left may go meanwhile.
    assert set(os.listdir("/proc/self/fd")) <= descriptors, "descriptors leaked"
    assert own_children() <= children, "a child is left, perhaps a dead one"


def own_children() -> set[str]:
    """The process ids, of those too that nobody has waited for yet. Servers of other tests may be among them."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


class TestExecutedIpamPlugin(IpamPluginContract):
    def test_the_environment_is_inherited_with_the_calls_own_variables(
        self, world: ExecutedWorld, tmp_path: Path
    ) -> None:
        world.install("plugin", f"#!/bin/sh\nenv > {tmp_path}/env; echo $# $0 > {tmp_path}/arguments\n")
        world.plugin.delete(world.call("plugin"), world.clock.deadline(20))
        seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
        wanted = {
            "CNI_COMMAND": "DEL",
            "CNI_CONTAINERID": "c1",
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": "/var/run/netns/none",
            "CNI_PATH": str(world.bin),
            "CNI_ARGS": "IgnoreUnknown=1;IP=10.20.0.5",
            "KEPT": "as it is",
        }
        assert {name: seen[name] for name in wanted} == wanted
        assert (tmp_path / "arguments").read_text().split() == ["0", str(world.bin / "plugin")]
        assert world.environment["CNI_COMMAND"] == "ADD"

    def test_a_result_without_a_version_has_the_configurations(self, world: ExecutedWorld) -> None:
        world.install("plugin", '#!/bin/sh\necho \'{"ips":[{"address":"10.0.0.1/24"}]}\'\n')
        assert [str(ip.address) for ip in world.add().ips] == ["10.0.0.1/24"]

    def test_a_result_that_cannot_be_read_is_refused(self, world: ExecutedWorld) -> None:
        assert world.refusal("#!/bin/sh\necho nonsense\n").code == 999

    @pytest.mark.parametrize(
        ("program", "text"),
        [
            ("exit 3", "netplugin failed with no error message: exit status 3"),
            ("kill -9 $$", "netplugin failed with no error message: signal: killed"),
            ("kill -15 $$", "netplugin failed with no error message: signal: terminated"),
            ("ulimit -c 0; kill -11 $$", "netplugin failed with no error message: signal: segmentation fault"),
            ('echo "it \\"broke\\"" >&2; exit 1', 'netplugin failed: "it \\"broke\\"\\n"'),
        ],
    )
    def test_a_plugin_that_dies_silently_has_code_0(self, world: ExecutedWorld, program: str, text: str) -> None:
        refused = world.refusal(f"#!/bin/sh\n{program}\n")
        assert (str(refused), refused.code) == (text, 0)

    @pytest.mark.parametrize("output", ["oops", "[]", '{"code":"x"}', '{"code":-1}', '{"msg":7}', '{"details":[]}'])
    def test_a_diagnosis_that_is_no_cni_error_is_quoted(self, world: ExecutedWorld, output: str) -> None:
        """K03."""
        refused = world.refusal(f"#!/bin/sh\nprintf %s '{output}'\nexit 1\n")
        quoted = output.replace('"', '\\"')
        assert str(refused).startswith(f'netplugin failed but error parsing its diagnostic message "{quoted}": ')
        assert refused.code == 0

    @pytest.mark.parametrize("output", ["null", "{}"])
    def test_a_diagnosis_that_says_nothing_is_passed_on(self, world: ExecutedWorld, output: str) -> None:
        refused = world.refusal(f"#!/bin/sh\necho '{output}'\nexit 1\n")
        assert (str(refused), refused.code, refused.details) == ("", 0, "")

    def test_stderr_counts_only_when_stdout_is_empty(self, world: ExecutedWorld) -> None:
        refused = world.refusal('#!/bin/sh\necho noise >&2; echo \'{"code":7,"msg":"m"}\'; exit 1\n')
        assert (str(refused), refused.code) == ("m", 7)

    @pytest.mark.parametrize(
        ("mode", "content", "why"),
        [
            (0o644, "#!/bin/sh\n", "permission denied"),
            (0o755, "no program\n", "exec format error"),
            (0o755, "#!/no/interpreter\n", "no such file or directory"),
        ],
    )
    def test_a_plugin_that_cannot_be_started_is_named(
        self, world: ExecutedWorld, mode: int, content: str, why: str
    ) -> None:
        path = world.install("plugin", content)
        path.chmod(mode)
        with pytest.raises(Refused) as refused:
            world.add()
        assert str(refused.value) == f"netplugin failed with no error message: fork/exec {path}: {why}"
        assert refused.value.code == 999

    def test_a_variable_that_the_kernel_cannot_take_is_an_invalid_argument(self, world: ExecutedWorld) -> None:
        world.environment["ODD"] = "nul\0"
        assert str(world.refusal("#!/bin/sh\n")).endswith("/plugin: invalid argument")

    def test_a_plugin_being_written_is_tried_six_times_a_second_apart(self, world: ExecutedWorld) -> None:
        path = world.install("plugin", "#!/bin/sh\n")
        clock = MemoryClock()
        plugin = ExecutedIpamPlugin(world.environment, clock, world.log)
        with path.open("a"), pytest.raises(Refused, match="text file busy"):
            plugin.delete(world.call("plugin"), clock.deadline(60))
        assert clock.slept == [1.0] * 5

    def test_a_plugin_that_is_written_in_time_is_run(self, world: ExecutedWorld, tmp_path: Path) -> None:
        writer = world.install("plugin", f"#!/bin/sh\n: > {tmp_path}/ran\n").open("a")

        class Installer(MemoryClock):
            def sleep(self, seconds: float) -> None:
                writer.close()

        clock = Installer()
        ExecutedIpamPlugin(world.environment, clock, world.log).delete(world.call("plugin"), clock.deadline(60))
        assert (tmp_path / "ran").exists()

    def test_waiting_for_a_plugin_being_written_ends_at_the_deadline(self, world: ExecutedWorld) -> None:
        path = world.install("plugin", "#!/bin/sh\n")
        clock = MemoryClock()
        plugin = ExecutedIpamPlugin(world.environment, clock, world.log)
        with path.open("a"), pytest.raises(Expired):
            plugin.delete(world.call("plugin"), clock.deadline(2.5))
        assert clock.monotonic() == 2.5

    def test_megabytes_both_ways_do_not_block(self, world: ExecutedWorld) -> None:
        world.install("plugin", "#!/bin/sh\ncat\n")
        call = world.call("plugin")
        large = call.replace(netconf_text='{"cniVersion":"1.0.0","pad":"' + "x" * (5 << 20) + '"}')
        assert world.plugin.add(large, world.clock.deadline(20)) == Result()

    def test_a_plugin_need_not_read_its_input(self, world: ExecutedWorld) -> None:
        world.install("plugin", "#!/bin/sh\necho '{}'\n")
        large = world.call("plugin").replace(netconf_text=" " * (5 << 20))
        assert world.plugin.add(large, world.clock.deadline(20)) == Result()

    def test_endless_output_is_refused(self, world: ExecutedWorld) -> None:
        assert str(world.refusal("#!/bin/sh\nexec yes\n")) == "netplugin failed: output of more than 16 MiB"

    def test_a_grandchild_that_keeps_the_output_open_holds_nobody_up(
        self, world: ExecutedWorld, tmp_path: Path
    ) -> None:
        pid = tmp_path / "grandchild"
        world.install("plugin", f"#!/bin/sh\nsleep 60 &\necho $! > {pid}\necho '{{}}'\n")
        before = time.monotonic()
        assert world.add(seconds=60) == Result()
        assert time.monotonic() - before < 20
        os.kill(int(pid.read_text()), signal.SIGKILL)

    def test_a_plugin_that_closes_its_output_early_is_waited_for(self, world: ExecutedWorld, tmp_path: Path) -> None:
        world.install("plugin", f"#!/bin/sh\necho '{{}}'\nexec >&- 2>&-\nsleep 0.3\n: > {tmp_path}/done\n")
        world.add()
        assert (tmp_path / "done").exists()

    def test_the_child_has_our_pipes_only_and_ordinary_signals(self, world: ExecutedWorld, tmp_path: Path) -> None:
        inherited = {
            os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if is_inheritable(int(fd))
        }
        look = f"cat /proc/self/status > {tmp_path}/s\nreadlink /proc/self/fd/* > {tmp_path}/f\nexit 0\n"
        with (tmp_path / "ours").open("w"):
            world.install("plugin", f"#!/bin/sh\n{look}")
            world.plugin.delete(world.call("plugin"), world.clock.deadline(20))
        status = dict(line.split(":\t", 1) for line in (tmp_path / "s").read_text().splitlines() if ":\t" in line)
        assert int(status["SigBlk"], 16) == 0
        assert not int(status["SigIgn"], 16) & 1 << signal.SIGPIPE - 1
        opened = [line for line in (tmp_path / "f").read_text().splitlines() if line not in inherited]
        assert str(tmp_path / "ours") not in opened
        assert len({line for line in opened if line.startswith("pipe:")}) <= 3


def is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the one that listed the others
        return False


DRIVER = """
import os, signal, sys
sys.path.insert(0, {root!r})
{before}
from adapters.linux.clock import SystemClock
from adapters.linux.process.plugin_exec import ExecutedIpamPlugin
from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import Request
from ports.ipam_plugin import IpamCall

class Silent:
    def warning(self, message, **fields): raise AssertionError(message)

clock = SystemClock()
plugin = ExecutedIpamPlugin(dict(os.environ), clock, Silent())
request = Request("ADD", "c1", "", "eth0", "", ({path!r},))
call = IpamCall(request, NetConf(cni_version="1.0.0", ipam=IpamSettings(type="plugin")), "{{}}")
try:
    result = plugin.add(call, clock.deadline(30))
    with open({outcome!r}, "w") as file:
        file.write(repr(len(result.ips)))
except BaseException as error:
    with open({outcome!r}, "w") as file:
        file.write(type(error).__name__ + " " + str(error))
    raise
"""


class Driver:
    """Our adapter in a process of its own."""

    def __init__(self, world: ExecutedWorld, directory: Path) -> None:
        self.world, self.outcome, self._directory = world, directory / "outcome", directory

    def start(self, plugin: str, before: str = "", **options: object) -> subprocess.Popen[bytes]:
        self.world.install("plugin", plugin)
        program = DRIVER.format(root=str(ROOT), before=before, path=str(self.world.bin), outcome=str(self.outcome))
        command = [sys.executable, "-ISBWignore", "-c", program]
        return subprocess.Popen(command, stderr=subprocess.PIPE, **options)

    def run(self, plugin: str, before: str = "", **options: object) -> tuple[str, bytes]:
        """What came of it, and what went to stderr."""
        with self.start(plugin, before, **options) as process:
            _, stderr = process.communicate(timeout=60)
        return self.outcome.read_text(), stderr

    def pid_of_plugin(self) -> int:
        return int(wait_for(lambda: read(self._directory / "pid")))

    def waiting_plugin(self) -> str:
        pid = self._directory / "pid"
        return f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nexec sleep 60\n"


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def wait_for(look: object, seconds: float = 60) -> str:
    assert callable(look)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found:
            return str(found)
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def is_gone(pid: int) -> bool:
    """Dead; whether somebody has waited for it is up to whoever adopted it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


@pytest.fixture
def driver(world: ExecutedWorld, tmp_path: Path) -> Driver:
    return Driver(world, tmp_path)


ANSWER = """#!/bin/sh
[ "$(cat)" = "{}" ] || exit 5
echo '{"ips":[{"address":"10.0.0.1/24"}]}'
"""


def test_kill_9_of_the_caller_kills_the_waiting_plugin(driver: Driver) -> None:
    """Issue 3: `kill -9` of `calico` while its exec'ed IPAM child waits; it cannot allocate afterwards."""
    with driver.start(driver.waiting_plugin()) as process:
        pid = driver.pid_of_plugin()
        assert not is_gone(pid)
        process.kill()
    wait_for(lambda: is_gone(pid))


def test_a_caller_that_died_before_the_kernel_was_told_is_noticed() -> None:
    pid = os.fork()
    if pid == 0:
        child_process._settle(set(), None, parent=1 << 30)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_termination_signal_kills_and_reaps_the_plugin(driver: Driver, number: signal.Signals) -> None:
    before = (
        "class Terminated(BaseException): pass\n"
        "def terminate(number, frame): raise Terminated(number)\n"
        f"signal.signal({int(number)}, terminate)\n"
    )
    with driver.start(driver.waiting_plugin(), before) as process:
        pid = driver.pid_of_plugin()
        process.send_signal(number)
        assert process.wait(60) == 1
        assert not Path(f"/proc/{pid}").exists()
    assert driver.outcome.read_text() == f"Terminated {int(number)}"


def test_the_deadline_kills_a_plugin_that_ignores_signals(world: ExecutedWorld, tmp_path: Path) -> None:
    """P04 for plugins."""
    world.install("plugin", f"#!/bin/sh\ntrap '' TERM INT HUP\necho $$ > {tmp_path}/pid\nwhile :; do sleep 0.1; done\n")
    pid = tmp_path / "pid"
    for seconds in (0.5, 2, 8, 30):  # until it has come so far as to ignore them
        with pytest.raises(Expired, match="IPAM plugin plugin"):
            world.add(seconds=seconds)
        if pid.exists() and pid.read_text():
            break
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_a_stopped_plugin_is_killed_too(world: ExecutedWorld) -> None:
    world.install("plugin", "#!/bin/sh\nkill -STOP $$\n")
    with pytest.raises(Expired):
        world.add(seconds=0.3)


def test_stderr_of_a_successful_plugin_is_passed_on(driver: Driver) -> None:
    assert driver.run(ANSWER + "echo a warning >&2\n") == ("1", b"a warning\n")


def test_stderr_of_a_failed_plugin_is_not(driver: Driver) -> None:
    outcome, stderr = driver.run('#!/bin/sh\necho noise >&2\necho \'{"code":9,"msg":"no"}\'\nexit 1\n')
    assert outcome == "Refused no"
    assert b"noise\n" not in stderr


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_closed_standard_descriptors_do_not_matter(driver: Driver, closed: tuple[int, ...]) -> None:
    before = "".join(f"os.close({fd})\n" for fd in closed)
    outcome, _ = driver.run(ANSWER + "echo a warning >&2\n", before)
    assert outcome == "1"


def test_nothing_is_written_to_a_file_that_took_the_place_of_stderr(driver: Driver, tmp_path: Path) -> None:
    precious = tmp_path / "database"
    precious.write_text("kept")
    program = f'exec 2>&-\nexec {shlex.quote(sys.executable)} -ISB -c "$DRIVER"'
    driver.world.install("plugin", ANSWER + "echo a warning >&2\n")
    before = f"assert os.open({str(precious)!r}, os.O_WRONLY) == 2"
    text = DRIVER.format(root=str(ROOT), before=before, path=str(driver.world.bin), outcome=str(driver.outcome))
    subprocess.run(["sh", "-c", program], env={**os.environ, "DRIVER": text}, check=False)
    assert (driver.outcome.read_text(), precious.read_text()) == ("1", "kept")


def test_a_starter_that_ignores_dead_children_does_not_matter(driver: Driver) -> None:
    before = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    assert driver.run("#!/bin/sh\nexit 4\n", before)[0] == (
        "Refused netplugin failed with no error message: exit status 4"
    )


def test_without_pidfds_it_works_as_well(driver: Driver) -> None:
    before = "def forbidden(*_): raise PermissionError\nos.pidfd_open = forbidden\n"
    assert driver.run(ANSWER, before)[0] == "1"


def test_a_removed_working_directory_does_not_matter(driver: Driver, tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    assert driver.run(ANSWER, f"os.rmdir({str(place)!r})", cwd=place)[0] == "1"


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_umask_does_not_matter(driver: Driver, umask: int) -> None:
    assert driver.run(ANSWER, f"os.umask({umask})\nimport atexit\natexit.register(os.umask, 0)")[0:1] == ("1",)


def test_loading_the_adapter_does_not_load_slow_modules() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import adapters.linux.process.plugin_exec, adapters.linux.lock_file\n"
        "import adapters.linux.node_files, adapters.linux.clock\n"
        "import adapters.linux.readiness_http, adapters.plugin_path, adapters.linux.cluster_absent\n"
        "print(*sorted(sys.modules))\n"
    )
    loaded = subprocess.run([sys.executable, "-ISBc", program], capture_output=True, text=True, check=True).stdout
    slow = "subprocess ctypes socket _socket ssl signal enum re json contextlib typing dataclasses logging http urllib"
    assert not set(slow.split()) & set(loaded.split())


def test_the_originals_world_writable_modes_are_not_needed(world: ExecutedWorld) -> None:
    path = world.install("plugin", ANSWER.replace("exit 5", ":"))
    path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert len(world.add().ips) == len(RESULT.ips) - 1
