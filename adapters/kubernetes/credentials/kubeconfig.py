"""A kubeconfig, or several merged by precedence, as values: the cluster and the user that a context names.

The rules are those of the original's client library. The first file that has a name wins, and a path is relative to
the folder of the file that it stands in. Of several files some may be missing; a single one has to be there.

Invariant: errors name the file, and show nothing of what is in it but names.
"""

from __future__ import annotations

from adapters.kubernetes.credentials.fields import Malformed, flag, items, member, octets, text, texts
from adapters.kubernetes.credentials.outside import read_file
from adapters.kubernetes.credentials.yaml_subset import Beyond, YamlError, parse_yaml
from domain.value import Value
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapters.kubernetes.credentials.exec_plugin import ExecPlugin
    from adapters.kubernetes.credentials.fields import Object
    from domain.json_text import Json

_SECOND_LOOK = 0.1  # seconds after which a file that somebody is writing may be whole
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class Material(Value):
    """A certificate or key: inline, or in a file that is read when it is needed."""

    data: bytes = b""
    path: str = ""

    def __repr__(self) -> str:
        return f"Material({self.path!r})"  # not the data

    def read(self, shown: str) -> bytes:
        """b"" when there is none. BadConfiguration names the file."""
        return self.data or (read_file(shown, self.path) if self.path else b"")


class ClusterEntry(Value):
    server: str = ""
    ca: Material = Material()
    insecure: bool = False
    server_name: str = ""
    proxy_url: str = ""
    exec_config: Json = None
    """For a credential plugin: whatever the cluster's extension for it holds."""


class User(Value):
    """`headers` are those of impersonation. `shown` says where all this comes from, for errors."""

    token: str = ""
    token_file: str = ""
    name: str = ""
    password: str = ""
    cert: Material = Material()
    key: Material = Material()
    exec: ExecPlugin | None = None
    headers: tuple[tuple[str, str], ...] = ()
    shown: str = ""

    def __repr__(self) -> str:
        return f"User({self.shown})"


class _Entry(Value):
    body: Object
    path: str


class _Merged:
    """Entries of all files by kind and name."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, _Entry]] = {"cluster": {}, "user": {}, "context": {}}
        self.context = ""

    def add(self, path: str, document: Object) -> None:
        if text(document, "kind") not in ("", "Config"):
            raise Malformed(f"kind is not Config but {text(document, 'kind')}")
        for kind, known in self.entries.items():
            own: dict[str, _Entry] = {}
            for item in items(document, f"{kind}s"):
                name = text(item, "name")
                if name in own:
                    raise Malformed(f"two {kind}s are called {name!r}")
                own[name] = _Entry(member(item, kind), path)
            known.update({name: entry for name, entry in own.items() if name not in known})
        self.context = self.context or text(document, "current-context")

    def named(self, kind: str, name: str) -> _Entry:
        if name not in self.entries[kind]:
            raise Malformed(f"there is no {kind} {name!r}, which the context names")
        return self.entries[kind][name]


def load_kubeconfig(paths: Sequence[str], context: str, sleep: Callable[[float], None]) -> tuple[ClusterEntry, User]:
    """What `context`, or else the file's current one, names; both are empty when there is no current context.

    A file that makes no sense is read again after a moment: somebody may be writing it.
    """
    from os.path import exists

    present = [path for path in paths if exists(path)] if len(paths) > 1 else paths
    if not present:
        raise BadConfiguration(f"kubeconfig {', '.join(paths)}: none of these files exists")
    try:
        found = _load(present, context)
        if found[0] != ClusterEntry():
            return found
    except BadConfiguration:
        pass
    sleep(_SECOND_LOOK)
    return _load(present, context)


def inline_kubeconfig(content: str, context: str) -> tuple[ClusterEntry, User]:
    """The same from a text in somebody's configuration."""
    return _select(_merge({"inline": content.encode("utf-8", "replace")}), "inline", context)


def _load(paths: Sequence[str], context: str) -> tuple[ClusterEntry, User]:
    contents = {path: read_file("kubeconfig", path) for path in paths}
    return _select(_merge(contents), ", ".join(paths), context)


def _merge(contents: Mapping[str, bytes]) -> _Merged:
    merged = _Merged()
    for path, content in contents.items():
        try:
            document = _parse(content.decode("utf-8"))
            if not isinstance(document, dict):
                raise Malformed("it is not a map" if content.strip() else "it is empty")
            merged.add(path, document)
        except ValueError as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            raise BadConfiguration(f"kubeconfig {path} ({len(content)} bytes): {why}") from None
    return merged


def _parse(content: str) -> Json:
    """What is beyond the subset, a library reads. No error shows anything of the text."""
    try:
        return parse_yaml(content)
    except YamlError as refused:
        try:
            from adapters.kubernetes.credentials.whole_yaml import first_document

            return first_document(content)
        except (ImportError, ValueError) as error:
            line: int = getattr(error, "line", 0)
        if isinstance(refused, Beyond) and line:
            raise YamlError(line, "the YAML is broken here") from None
        raise


def _select(merged: _Merged, paths: str, context: str) -> tuple[ClusterEntry, User]:
    wanted = context or merged.context
    if not wanted:
        return ClusterEntry(), User(shown=f"kubeconfig {paths}, which has no current-context")
    try:
        if wanted not in merged.entries["context"]:
            raise Malformed(f"there is no context {wanted!r}")
        chosen = merged.entries["context"][wanted].body
        cluster, user = text(chosen, "cluster"), text(chosen, "user")
        found_cluster = _read_cluster(merged.named("cluster", cluster)) if cluster else ClusterEntry()
        found_user = _read_user(merged.named("user", user), user) if user else User(shown=f"kubeconfig {paths}")
    except ValueError as error:
        raise BadConfiguration(f"kubeconfig {paths}: {error}") from None
    return found_cluster, found_user


def _beside(path: str, relative: str) -> str:
    """A path that stands in the file `path`."""
    folder, slash, _ = path.rpartition("/")
    return relative if not relative or relative.startswith("/") else f"{folder}{slash}{relative}"


def _material(entry: _Entry, name: str) -> Material:
    """Data come before a file."""
    data = octets(entry.body, f"{name}-data")
    return Material(data) if data else Material(path=_beside(entry.path, text(entry.body, name)))


def _read_cluster(entry: _Entry) -> ClusterEntry:
    body = entry.body
    extensions = {text(item, "name"): item.get("extension") for item in items(body, "extensions")}
    return ClusterEntry(
        server=text(body, "server"),
        ca=_material(entry, "certificate-authority"),
        insecure=flag(body, "insecure-skip-tls-verify"),
        server_name=text(body, "tls-server-name"),
        proxy_url=text(body, "proxy-url"),
        exec_config=extensions.get(_EXEC_EXTENSION),
    )


def _read_user(entry: _Entry, name: str) -> User:
    body = entry.body
    if body.get("auth-provider"):
        provider = text(member(body, "auth-provider"), "name")
        raise Malformed(f"auth-provider {provider!r} of user {name!r} is not supported; use an exec plugin instead")
    return User(
        token=text(body, "token"),
        token_file=_beside(entry.path, text(body, "tokenFile")),
        name=text(body, "username"),
        password=text(body, "password"),
        cert=_material(entry, "client-certificate"),
        key=_material(entry, "client-key"),
        exec=_read_exec(member(body, "exec"), entry.path),
        headers=_impersonation(body),
        shown=f"kubeconfig {entry.path}, user {name!r}",
    )


def _read_exec(entry: Object, path: str) -> ExecPlugin | None:
    if not entry:
        return None
    from adapters.kubernetes.credentials.exec_plugin import read_exec

    return read_exec(entry, lambda command: _beside(path, command))


def _impersonation(body: Object) -> tuple[tuple[str, str], ...]:
    found = [("Impersonate-User", text(body, "as")), ("Impersonate-Uid", text(body, "as-uid"))]
    found += [("Impersonate-Group", group) for group in texts(body, "as-groups")]
    extra = member(body, "as-user-extra")
    found += [(f"Impersonate-Extra-{key}", value) for key in sorted(extra) for value in texts(extra, key)]
    return tuple([(name, value) for name, value in found if value])
