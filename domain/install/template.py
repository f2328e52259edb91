"""The network configuration that is installed: a template, and what its placeholders stand for.

A placeholder is replaced wherever its letters stand, one after another, by a text that nobody quotes for JSON; so a
value may bring a later placeholder in. One that nobody knows stays, as the original leaves it.

Invariant: pure; what is rendered is returned only if it is a JSON object.
"""

from __future__ import annotations

from domain.cni.datastores import DATASTORES
from domain.install.errors import CannotInstall
from domain.install.places import KUBECONFIG, TLS
from domain.json_text import JsonError, dumps, kind_of, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from domain.install.settings import InstallSettings
    from domain.json_text import Json

BUILT_IN = """\
{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "__LOG_LEVEL__",
      "log_file_path": "__LOG_FILE_PATH__",
      "datastore_type": "__DATASTORE_TYPE__",
      "nodename": "__KUBERNETES_NODE_NAME__",
      "mtu": __CNI_MTU__,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
      "require_mtu_file": __REQUIRE_MTU_FILE__,
      "calico_api_group": "__CALICO_API_GROUP__"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}"""
# In the order in which they are replaced.
_ORDER = (
    "LOG_LEVEL",
    "LOG_FILE_PATH",
    "LOG_FILE_MAX_SIZE",
    "LOG_FILE_MAX_AGE",
    "LOG_FILE_MAX_COUNT",
    "DATASTORE_TYPE",
    "KUBERNETES_NODE_NAME",
    "KUBECONFIG_FILEPATH",
    "CNI_MTU",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "SERVICEACCOUNT_TOKEN",
    "CALICO_API_GROUP",
    "ETCD_CERT_FILE",
    "ETCD_CA_CERT_FILE",
    "ETCD_KEY_FILE",
    "ETCD_ENDPOINTS",
    "ETCD_DISCOVERY_SRV",
    "REQUIRE_MTU_FILE",
    "LOG_FORMAT",
    "METRICS_DIR",
)
_TLS_PLACEHOLDERS = {"ETCD_CERT_FILE": "etcd-cert", "ETCD_CA_CERT_FILE": "etcd-ca", "ETCD_KEY_FILE": "etcd-key"}


class Template(Value):
    """`origin` is the variable or file that it is from, for errors."""

    text: str = BUILT_IN
    origin: str = "the built-in template"

    def unknown(self, settings: InstallSettings) -> tuple[str, ...]:
        """What looks like a placeholder and is none, each once."""
        import re

        known = {*_ORDER, *[literal.strip('_"') for literal, _ in settings.platform]}
        found = re.findall(r"__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__", self.text)
        return tuple(dict.fromkeys([name for name in found if name.strip("_") not in known]))

    def render(self, settings: InstallSettings, token: str, tls_files: Collection[str]) -> Rendered:
        """`token` is the pod's own; `tls_files` are those that are installed. CannotInstall if it is no JSON object."""
        values = {**settings.substituted, "SERVICEACCOUNT_TOKEN": token}
        values["KUBECONFIG_FILEPATH"] = f"{settings.host_net_dir}/{KUBECONFIG}"
        for name, file in _TLS_PLACEHOLDERS.items():
            values[name] = f"{settings.host_net_dir}/{TLS}/{file}" if file in tls_files else ""
        text = self.text
        for literal, value in settings.platform:
            text = text.replace(literal, value)
        for name in _ORDER:
            text = text.replace(f"__{name}__", values[name])
        rendered = Rendered(text, self._parsed(text))
        for plugin in rendered.plugins():
            kind = plugin.get("datastore_type", "")
            if kind not in ("", *DATASTORES):
                known = "kubernetes, etcdv3 or sqlite"
                raise CannotInstall(f"DATASTORE_TYPE: no such datastore: {kind}; say {known} (in {self.origin})")
        return rendered

    def _parsed(self, text: str) -> dict[str, Json]:
        try:
            document = parse(text)
        except JsonError as error:
            raise self._refused(str(error)) from None
        if not isinstance(document, dict):
            why = f"cannot unmarshal {kind_of(document)} into Go value of type map[string]interface {{}}"
            raise self._refused(f"json: {why}")
        return document

    def _refused(self, why: str) -> CannotInstall:
        return CannotInstall(f"CNI config is not valid JSON: {why}; it was made from {self.origin}")


class Rendered(Value):
    """The text that is installed, and what it says."""

    text: str
    document: dict[str, Json]

    def plugins(self) -> list[dict[str, Json]]:
        """Each plugin of type `calico`."""
        listed = self.document.get("plugins")
        plugins: list[Json] = listed if isinstance(listed, list) else [self.document]
        return [plugin for plugin in plugins if isinstance(plugin, dict) and plugin.get("type") == "calico"]

    def probes(self, place_of: Callable[[str], str]) -> tuple[str, ...]:
        """The configuration of each plugin of type `calico`, as a runtime would give it to the plugin.

        `place_of` says where we see a file that the host sees at the path that it gets.
        """
        shared: dict[str, Json] = {key: self.document[key] for key in ("name", "cniVersion") if key in self.document}
        return tuple([dumps(_seen_from_here({**shared, **plugin}, place_of)) for plugin in self.plugins()])


def _seen_from_here(value: Json, place_of: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return place_of(value)
    if isinstance(value, list):
        return [_seen_from_here(item, place_of) for item in value]
    if isinstance(value, dict):
        return {key: _seen_from_here(item, place_of) for key, item in value.items()}
    return value
