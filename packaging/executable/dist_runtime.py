"""Builds what the executable is linked from: musl, OpenSSL, SQLite and CPython, from Debian's source packages.

All of it is static and for musl: a program linked with glibc loads the host's libraries to look up names, and breaks
where there are none or others; musl reads /etc/hosts and /etc/resolv.conf itself. Nothing is installed, and the
machine's package configuration is only read: where it gets packages from, it may get their sources from.

The result is kept outside of the clone, in a folder named after the hash of this recipe, the sources' versions and the
compiler. Invariant: a folder with a `complete` in it is complete, whoever builds at the same time or is ended halfway.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCES = ("python3.11", "openssl", "sqlite3", "musl")
TOOLS = {
    "gcc": "gcc",
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
SQLITE = "-DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_TEMP_STORE=2"
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


def say(text: str) -> None:
    print(text, flush=True)


def call(*words: str | Path, folder: Path | None = None, **environment: str) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **environment}, text=True, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


# --- sources --------------------------------------------------------------------------------------------------------


class Apt:
    """APT with a configuration of its own: the sources that belong to the packages which the machine may install."""

    def __init__(self, folder: Path) -> None:
        self._list = folder / "sources.list"
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._list.write_text("".join(sorted(source_lines())))
        places = {
            "Dir::Etc::SourceList": self._list,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "",
        }
        self._options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
        call("apt-get", *self._options, "-q", "update")

    def versions(self, package: str) -> list[str]:
        """Newest first."""
        shown = call("apt-cache", *self._options, "showsrc", package)
        return list(dict.fromkeys(re.findall(r"^Version: (\S+)$", shown, flags=re.MULTILINE)))

    def unpack(self, package: str, folder: Path) -> str:
        """Fetch and unpack the newest that is to be had into `folder/package`, patched as Debian does; its version."""
        offered = self.versions(package)
        for version in offered:
            place = folder / f"{package}.fetched"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            words = ["apt-get", *self._options, "-q", "--only-source", "source", f"{package}={version}"]
            done = subprocess.run(words, cwd=place, text=True, capture_output=True, check=False)
            unpacked = [path for path in place.iterdir() if path.is_dir()]
            if done.returncode == 0 and len(unpacked) == 1:
                unpacked[0].rename(folder / package)
                return version
            say(f"   {package} {version} is announced but not to be had")
        sys.exit(f"The sources of {package} are not to be had: {', '.join(offered) or 'no version is offered'}")


def source_lines() -> list[str]:
    """Where this machine's packages come from, as lines for their sources."""
    form = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    found = call("apt-get", "indextargets", "--format", form, "Created-By: Packages").split()
    keyrings = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.*"))
    options = f"[signed-by={keyrings[0]}] " if keyrings else ""
    lines = {f"deb-src {options}{' '.join(line.split('|')[1:])}\n" for line in found if line.startswith("Debian|")}
    if not lines:
        sys.exit(
            "`make dist` takes its sources from Debian's repositories, and APT knows none here (`apt-get update`?)"
        )
    return sorted(lines)


# --- building -------------------------------------------------------------------------------------------------------


class Runtime:
    """A finished build: `folder` has the objects, `python` runs scripts by the same interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cpython = folder / "python3.11"
        self.gcc = folder / "musl-root" / "bin" / "musl-gcc"

    def python(self, *words: str | Path) -> None:
        library = f"{self.cpython}/Lib"
        call(self.cpython / "python", "-S", "-B", *words, PYTHONPATH=library, PYTHONHASHSEED="0")


class Steps:
    """Runs commands in a folder, their output to a log beside it, and says how far it is."""

    def __init__(self, folder: Path) -> None:
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
    steps.run("musl", "./configure", f"--prefix={root}", "--disable-shared", "CFLAGS=-O2 -fno-pie -fno-ident")
    steps.make("musl")
    steps.make("musl", "install")
    kernel = Path("/usr/include")  # the kernel's own headers, which go with any C library
    triplet = call("gcc", "-print-multiarch").strip()
    for name, place in (("linux", "linux"), ("asm-generic", "asm-generic"), ("asm", f"{triplet}/asm")):
        found = kernel / place if (kernel / place).is_dir() else kernel / name
        (root / "include" / name).symlink_to(found)


def build_openssl(steps: Steps, _folder: Path) -> None:
    target = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch64"}.get(platform.machine(), "linux-generic64")
    without = [f"no-{name}" for name in OPENSSL_WITHOUT.split()]
    paths = ("--prefix=/usr", "--openssldir=/etc/ssl")
    steps.run("openssl", "./Configure", target, *paths, *without, "CC=musl-gcc", f"CFLAGS={COMPILED}")
    steps.make("openssl", "build_libs")


def build_sqlite(steps: Steps, folder: Path) -> None:
    (folder / "sqlite").mkdir()
    steps.run("sqlite", "../sqlite3/configure", "--disable-shared", "--disable-readline", "--disable-tcl")
    steps.make("sqlite", "sqlite3.c", "sqlite3.h")  # one file of all, made by programs for this machine
    steps.run("sqlite", "musl-gcc", *COMPILED.split(), *SQLITE.split(), "-c", "sqlite3.c")
    steps.run("sqlite", "ar", "rcsD", "../libsqlite3.a", "sqlite3.o")


def build_cpython(steps: Steps, folder: Path) -> None:
    (folder / "python3.11" / "Modules" / "Setup.local").write_text(f"TORTIE={folder}\n{MODULES}")
    options = "--prefix=/usr --disable-shared --disable-test-modules --without-ensurepip --without-doc-strings"
    steps.run(
        "python3.11",
        "./configure",
        *options.split(),
        "--without-readline",
        f"--build={call('gcc', '-dumpmachine').strip()}",  # the compiler is made for glibc, and says so
        "CC=musl-gcc",
        "OPT=-DNDEBUG -fwrapv",
        f"CFLAGS={COMPILED} -ffile-prefix-map={folder}=.",
        f"LDFLAGS={LINKED}",
        "LINKFORSHARED= ",
    )
    steps.make("python3.11", "libpython3.11.a", "python")


STEPS = {"musl": build_musl, "openssl": build_openssl, "sqlite3": build_sqlite, "python3.11": build_cpython}
NAMES = {"musl": "musl", "openssl": "OpenSSL", "sqlite3": "SQLite", "python3.11": "CPython"}


def check_tools() -> None:
    lacking = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if not Path("/usr/include/linux").is_dir():
        lacking.append("linux-libc-dev")
    if lacking:
        sys.exit(f"`make dist` needs the Debian packages {' '.join(lacking)}")


def build_all(folder: Path, apt_folder: Path) -> None:
    say("== Fetching the sources of the executable's interpreter and libraries")
    apt = Apt(apt_folder)
    versions = {package: apt.unpack(package, folder) for package in SOURCES}
    steps = Steps(folder)
    for package, build in STEPS.items():
        began = time.monotonic()
        say(f"== Building {NAMES[package]} {versions[package]}")
        build(steps, folder)
        say(f"   in {time.monotonic() - began:.0f} s")
    (folder / "versions").write_text("".join(f"{NAMES[name]} {versions[name]}\n" for name in sorted(versions)))
    (folder / "complete").touch()


def runtime() -> Runtime:
    """The build for this recipe and machine, made now if there is none."""
    check_tools()
    recipe = Path(__file__).read_bytes() + call("gcc", "-dumpfullversion").encode() + platform.machine().encode()
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
            build_all(folder, cache / "apt")
    return Runtime(folder)
