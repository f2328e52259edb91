"""Builds what the executable is linked from: musl, OpenSSL, SQLite and CPython, from Debian's source packages.

All of it is static and for musl: a program linked with glibc loads the host's libraries to look up names, and breaks
where there are none or others; musl reads /etc/hosts and /etc/resolv.conf itself.

For another machine than this one everything is cross-compiled, but for the interpreter that runs during the build.

The result is kept outside of the clone, in a folder named after the hash of this recipe, the compiler and the
machine. Invariant: a folder with a `complete` in it is complete, whoever builds at the same time or is ended halfway.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from dist_machine import Machine, here
from dist_sources import Apt, call, say

SOURCES = ("python3.11", "openssl", "sqlite3", "musl")
TOOLS = {
    "make": "make",
    "perl": "perl",
    "dpkg-source": "dpkg-dev",
    "tclsh": "tcl",
    "xz": "xz-utils",
    "patch": "patch",
}
TOO_OLD = "1700000000"  # SOURCE_DATE_EPOCH of the libraries; their own dates are in `versions`
COMPILED = (
    "-O2 -fno-pie -fno-ident -ffunction-sections -fdata-sections -w"  # code at fixed addresses: nothing to relocate
)
LINKED = "-static -no-pie -Wl,-z,stack-size=1048576 -Wl,--build-id=none"  # of threads: musl gives 128 KiB
# TLS 1.2 and 1.3 for clients, with the keys and certificates that are in use; no configuration file is read.
OPENSSL_WITHOUT = (
    "shared pic dso engine module tests async comp legacy weak-ssl-ciphers ssl3 dtls sctp srp psk idea seed aria"
    " camellia bf cast rc2 rc4 md4 mdc2 whirlpool rmd160 sm2 sm3 sm4 gost siphash cms ts cmp ct ui-console rfc3779 ec2m"
    " nextprotoneg autoload-config makedepend"
)
# After the options what SQLite's own configuration finds in musl, too. Without usleep it waits for whole seconds, or
# not at all. Left out: malloc_usable_size, which knows nothing of the blocks of memory.c.
SQLITE = (
    "-DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_TEMP_STORE=2"
    " -DHAVE_USLEEP=1 -DHAVE_FDATASYNC=1 -DHAVE_PREAD=1 -DHAVE_PWRITE=1 -DHAVE_STRCHRNUL=1 -DHAVE_ISNAN=1"
    " -DHAVE_GMTIME_R=1 -DHAVE_LOCALTIME_R=1 -DHAVE_UTIME=1 -DHAVE_STDINT_H=1 -DHAVE_INTTYPES_H=1"
)
MODULES = """\
*static*
_bisect _bisectmodule.c
_datetime _datetimemodule.c
_heapq _heapqmodule.c
_json _json.c
_md5 md5module.c
_queue _queuemodule.c
_random _randommodule.c
_sha1 sha1module.c
_sha256 sha256module.c
_sha3 _sha3/sha3module.c
_sha512 sha512module.c
_socket socketmodule.c
_sqlite3 -I$(TORTIE)/sqlite _sqlite/blob.c _sqlite/connection.c _sqlite/cursor.c _sqlite/microprotocols.c \
_sqlite/module.c _sqlite/prepare_protocol.c _sqlite/row.c _sqlite/statement.c _sqlite/util.c $(TORTIE)/libsqlite3.a
_ssl -I$(TORTIE)/openssl/include _ssl.c $(TORTIE)/openssl/libssl.a $(TORTIE)/openssl/libcrypto.a
_struct _struct.c
_typing _typingmodule.c
array arraymodule.c
binascii -I. binascii.c
fcntl fcntlmodule.c
math mathmodule.c
select selectmodule.c
unicodedata unicodedata.c
"""
# To count who uses an object, or how often code runs, is to write to the memory that it is in; a process has to copy
# what it writes to, page by page. So what is in a snapshot is not counted (snapshot.c).
PATCHES = {
    "Include/object.h": {
        "    op->ob_refcnt++;": "    if (op->ob_refcnt >> 32 == 0) op->ob_refcnt++;",
        "    if (--op->ob_refcnt == 0) {": "    if (op->ob_refcnt >> 32 == 0 && --op->ob_refcnt == 0) {",
    },
    "Include/internal/pycore_object.h": {
        "    if (--op->ob_refcnt != 0) {": "    if (op->ob_refcnt >> 32 != 0 || --op->ob_refcnt != 0) {",
        "    op->ob_refcnt--;": "    if (op->ob_refcnt >> 32 == 0) op->ob_refcnt--;",
    },
    "Python/ceval.c": {
        "        if (--op->ob_refcnt == 0) {": "        if (op->ob_refcnt >> 32 == 0 && --op->ob_refcnt == 0) {",
        "            _PyCode_Warmup(": "            if (tortie_quickens) _PyCode_Warmup(",
        "/* Forward declarations */\n": "int tortie_quickens = 1;\n/* Forward declarations */\n",
    },
}


# --- building -------------------------------------------------------------------------------------------------------


class Runtime:
    """A finished build: `folder` has the objects, `python` runs scripts by the same version of the interpreter.

    `host` is this machine's own build where this one is for another machine.
    """

    def __init__(self, folder: Path, host: Runtime | None) -> None:
        self.folder = folder
        self.cpython = folder / "python3.11"
        self.gcc = folder / "musl-root" / "bin" / "musl-gcc"
        self._runnable = host or self

    @property
    def interpreter(self) -> Path:
        return self._runnable.cpython / "python"

    def python(self, *words: str | Path) -> None:
        library = f"{self.cpython}/Lib"
        call(self.interpreter, "-S", "-B", *words, PYTHONPATH=library, PYTHONHASHSEED="0")


class Steps:
    """Runs commands in a folder, their output to a log beside it. `host` is this machine's build, for another's."""

    def __init__(self, folder: Path, machine: Machine, host: Runtime | None) -> None:
        self.machine = machine
        self.host = host
        self._folder = folder
        self._log = folder / "log"
        self._environment = {
            **os.environ,
            "PATH": f"{folder}/musl-root/bin:{os.environ['PATH']}",
            "SOURCE_DATE_EPOCH": TOO_OLD,
            "LC_ALL": "C",
        }

    def run(self, inside: str, *words: str) -> None:
        with self._log.open("ab") as log:
            done = subprocess.run(
                ["nice", "-n", "10", *words],
                cwd=self._folder / inside,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode:
            last = self._log.read_text("utf-8", "replace").splitlines()[-15:]
            sys.exit("\n".join([f"!! {' '.join(words)} failed ({self._log}):", *last]))

    def make(self, inside: str, *targets: str) -> None:
        self.run(inside, "make", "-j2", *targets)


def build_musl(steps: Steps, folder: Path) -> None:
    root = folder / "musl-root"
    machine = steps.machine
    other = (f"CROSS_COMPILE={machine.prefix}", f"--target={machine.gnu}-linux-musl") if machine.crossed else ()
    options = (f"--prefix={root}", "--disable-shared", *other)
    steps.run("musl", "./configure", *options, "CFLAGS=-O2 -fno-pie -fno-ident")
    steps.make("musl")
    steps.make("musl", "install")
    for name, place in machine.kernel_headers().items():
        (root / "include" / name).symlink_to(place)


def build_openssl(steps: Steps, _folder: Path) -> None:
    machine = steps.machine
    without = [f"no-{name}" for name in OPENSSL_WITHOUT.split()]
    paths = ("--prefix=/usr", "--openssldir=/etc/ssl")
    tools = ("CC=musl-gcc", f"AR={machine.ar}", f"RANLIB={machine.prefix}ranlib")
    steps.run("openssl", "./Configure", machine.openssl, *paths, *without, *tools, f"CFLAGS={COMPILED}")
    steps.make("openssl", "build_libs")


def build_sqlite(steps: Steps, folder: Path) -> None:
    (folder / "sqlite").mkdir()
    steps.run("sqlite", "../sqlite3/configure", "--disable-shared", "--disable-readline", "--disable-tcl")
    steps.make("sqlite", "sqlite3.c", "sqlite3.h")  # one file of all, made by programs for this machine
    steps.run("sqlite", "musl-gcc", *COMPILED.split(), *SQLITE.split(), "-c", "sqlite3.c")
    steps.run("sqlite", steps.machine.ar, "rcsD", "../libsqlite3.a", "sqlite3.o")


def patch_cpython(folder: Path) -> None:
    for name, changes in PATCHES.items():
        place = folder / name
        text = place.read_text()
        for before, after in changes.items():
            if before not in text:
                sys.exit(f"{place} is not what it was: where is {before.strip()!r}?")
            text = text.replace(before, after)
        place.write_text(text)


def build_cpython(steps: Steps, folder: Path) -> None:
    patch_cpython(folder / "python3.11")
    (folder / "python3.11" / "Modules" / "Setup.local").write_text(f"TORTIE={folder}\n{MODULES}")
    options = "--prefix=/usr --disable-shared --disable-test-modules --without-ensurepip --without-doc-strings"
    steps.run(
        "python3.11",
        "./configure",
        *options.split(),
        "--without-readline",
        f"--build={call('gcc', '-dumpmachine').strip()}",  # the compiler is made for glibc, and says so
        *(crossing(steps.machine, steps.host) if steps.host else ()),
        "CC=musl-gcc",
        "OPT=-DNDEBUG -fwrapv",
        f"CFLAGS={COMPILED} -ffile-prefix-map={folder}=.",
        f"LDFLAGS={LINKED}",
        "LINKFORSHARED= ",
    )
    steps.make("python3.11", "libpython3.11.a", "python")


def crossing(machine: Machine, host: Runtime) -> tuple[str, ...]:
    """What CPython's configuration would find out by running programs of its own on the machine that it is for."""
    return (
        f"--host={machine.gnu}-linux-musl",
        f"--with-build-python={host.interpreter}",
        f"AR={machine.ar}",
        f"READELF={machine.prefix}readelf",
        "ac_cv_file__dev_ptmx=yes",
        "ac_cv_file__dev_ptc=no",
        "ac_cv_buggy_getaddrinfo=no",
    )


STEPS = {"musl": build_musl, "openssl": build_openssl, "sqlite3": build_sqlite, "python3.11": build_cpython}
NAMES = {"musl": "musl", "openssl": "OpenSSL", "sqlite3": "SQLite", "python3.11": "CPython"}


def check_tools(machine: Machine) -> None:
    lacking = sorted({package for tool, package in (TOOLS | machine.tools).items() if not shutil.which(tool)})
    headers, package = machine.headers
    if not (headers / "linux").is_dir():
        lacking.append(package)
    if lacking:
        sys.exit(f"`make dist` for {machine.arch} needs the Debian packages {' '.join(lacking)}")


def build_all(folder: Path, apt_folder: Path, machine: Machine, host: Runtime | None) -> None:
    say(f"== Fetching the sources of the executable's interpreter and libraries, for {machine.arch}")
    apt = Apt(apt_folder)
    versions = {package: apt.unpack(package, folder) for package in SOURCES}
    steps = Steps(folder, machine, host)
    for package, build in STEPS.items():
        began = time.monotonic()
        say(f"== Building {NAMES[package]} {versions[package]}")
        build(steps, folder)
        say(f"   in {time.monotonic() - began:.0f} s")
    (folder / "versions").write_text("".join(f"{NAMES[name]} {versions[name]}\n" for name in sorted(versions)))
    (folder / "complete").touch()


def runtime(arch: str) -> Runtime:
    """The build for this recipe and that machine, made now if there is none."""
    machine = Machine(arch)
    check_tools(machine)
    host = runtime(here()) if machine.crossed else None
    recipe = Path(__file__).read_bytes() + machine.compiler_version().encode() + machine.gnu.encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tortie" / "executable"
    folder = cache / hashlib.sha256(recipe).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("== Somebody is building the executable's interpreter; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build_all(folder, cache / "apt", machine, host)
    return Runtime(folder, host)
