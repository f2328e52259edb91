"""The first process of a node, and with it everything that the node is: end it and the kernel ends the rest.

    python -I node_init.py NAME FOLDER GROUP

It prints its process id as others see it, then "ready". FOLDER keeps what a machine has on disk: what is written below
/etc, /opt and /var. What is below /run goes with the node. GROUP is the control group, in each hierarchy, that the
node takes for the root.

Invariant: nothing outside of the node's own namespaces changes, but for the control groups named GROUP.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# Mounts, host name, IPC, control groups, process ids, network.
FLAGS = 0x00020000 | 0x04000000 | 0x08000000 | 0x02000000 | 0x20000000 | 0x40000000
PR_SET_PDEATHSIG = 1
MACHINE_WIDE = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
)
LIBC = ctypes.CDLL(None, use_errno=True)


def hierarchies():
    """(where, file system, options) of each hierarchy of control groups that is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, kind = line.partition(" - ")
        words = kind.split()
        if words[0] in {"cgroup", "cgroup2"}:
            yield Path(place.split()[4]), words[0], words[2].removeprefix("rw,")


def enter_groups(group):
    for place, _, options in hierarchies():
        made = place / group
        made.mkdir(exist_ok=True)
        if "cpuset" in options.split(","):
            for name in ("cpuset.cpus", "cpuset.mems"):
                (made / name).write_text((place / name).read_text())
            (made / "cgroup.clone_children").write_text("1")
        (made / "cgroup.procs").write_text(str(os.getpid()))


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def furnish(name, folder):
    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    mount_groups(list(hierarchies()))
    mount_disk(folder)
    mount("-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", "/run")  # so that it can be full
    for directory in ("lock", "netns"):
        Path("/run", directory).mkdir()
    # What a kubelet sets for the whole machine, and would here for those who only run the tests.
    for setting in MACHINE_WIDE:
        mine = folder / setting.replace("/", ".")
        mine.write_bytes(Path("/proc/sys", setting).read_bytes())
        mount("--bind", str(mine), f"/proc/sys/{setting}")
    subprocess.run(["hostname", name], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        Path("/proc/sys/net", setting).write_text("1")


def mount_groups(groups):
    mount("-t", "sysfs", "sysfs", "/sys")
    if not any(place == Path("/sys/fs/cgroup") for place, _, _ in groups):
        mount("-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    for place, kind, options in groups:
        place.mkdir(parents=True, exist_ok=True)
        words = ["-o", options if "name=" not in options else f"none,{options}"] if kind == "cgroup" else []
        mount("-t", kind, *words, kind, str(place))


def mount_disk(folder):
    new = not folder.exists()
    for tree in ("etc", "opt", "var"):
        upper, work = folder / tree, folder / f".{tree}"
        upper.mkdir(parents=True, exist_ok=True)
        work.mkdir(exist_ok=True)
        mount("-t", "overlay", "-o", f"lowerdir=/{tree},upperdir={upper},workdir={work}", "overlay", f"/{tree}")
    if new:  # what the machine around it has installed, such as podman's own network
        for path in ("/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/calico"):
            shutil.rmtree(path, ignore_errors=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main():
    name, folder, group = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    die_with_parent()
    enter_groups(group)
    if LIBC.unshare(FLAGS) != 0:
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    child = os.fork()
    if child:
        print(child, flush=True)
        os.waitpid(child, 0)
        return
    die_with_parent()
    furnish(name, folder)
    print("ready", flush=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:  # those whose parents have died are ours
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


if __name__ == "__main__":
    main()
