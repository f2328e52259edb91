"""Tokens from a kube-apiserver's TokenRequest API, and the kubeconfig's side of the server that they are from.

Whoever asks does so a few times a day, so there is a connection per question and none in between; and what we go by
(kubeconfig, the pod's own token, the authority's certificate) is read anew each time, since all of it gets replaced.

Invariant: no token appears in an error or a log. The pod's own token is used only where the server says that it knows
no TokenRequest at all; an account that is missing is an error.
"""

from __future__ import annotations

from adapters.kubernetes.answers import NOT_FOUND, refusal
from adapters.kubernetes.credentials.outside import read_file
from adapters.kubernetes.objects import one
from adapters.kubernetes.paths import CORE_RESOURCES, TOKEN_REQUEST, token_path
from adapters.kubernetes.transport.seam import HttpRequest
from domain.install.kubeconfig import KubeconfigCluster
from domain.install.token import BadToken, token_expiry
from domain.json_text import dumps
from domain.moment import SECOND
from ports.errors import BadConfiguration, Missing, Unavailable
from ports.token_issuer import IssuedToken, TokenIssuer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.kubernetes.answers import Reply
    from adapters.kubernetes.api import Api
    from adapters.kubernetes.credentials.settings import Settings
    from domain.json_text import Json
    from ports.clock import Deadline

_TOKENS = "serviceaccounts/token"
_WHAT_TO_DO = "create it, or name another account with CALICO_CNI_SERVICE_ACCOUNT"
_WHERE = "run as a pod with a service account, or say which namespace the plugins' account is in"


class KubernetesTokenIssuer(TokenIssuer):
    """`settings` reads what we go by, `connect` makes a client of it. `folder` is where a pod's own account is, `now`
    gives nanoseconds since the epoch.
    """

    def __init__(
        self, settings: Callable[[], Settings], connect: Callable[[Settings], Api], folder: str, now: Callable[[], int]
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._folder = folder
        self._now = now

    def own_namespace(self) -> str:
        try:
            namespace = self._mounted("namespace")
        except BadConfiguration as error:
            raise BadConfiguration(f"Failed to read service account namespace file: {error}; {_WHERE}") from None
        if not namespace:
            raise BadConfiguration(f"service account namespace {self._folder}/namespace: the file is empty")
        return namespace

    def request_token(self, namespace: str, account: str, seconds: int, deadline: Deadline) -> IssuedToken:
        request = HttpRequest("POST", token_path(namespace, account), body=_asking_for(seconds))
        api = self._connect(self._settings())
        try:
            reply = api.write(request, deadline)
            if reply.ok:
                return _issued(reply, api.where, seconds, self._now())
            if reply.status == NOT_FOUND and not _gives_tokens(api, deadline):
                return self._own_token()
        finally:
            api.close()
        name = f"ServiceAccount({namespace}/{account})"
        raise Missing(name, f"{reply.message}; {_WHAT_TO_DO}") if reply.status == NOT_FOUND else refusal(reply, name)

    def cluster(self) -> KubeconfigCluster:
        settings = self._settings()
        server = settings.server
        url = f"{server.scheme}://{server.place}{server.prefix}"  # with its port, even one that goes without saying
        return KubeconfigCluster(url, settings.tls.ca, settings.tls.insecure)

    def _own_token(self) -> IssuedToken:
        """The pod's, which whoever put it there renews as well."""
        token = self._mounted("token")
        try:
            expires = token_expiry(token)
        except BadToken as error:
            raise BadConfiguration(f"service account token {self._folder}/token: {error}") from None
        return IssuedToken(token, max(0.0, (expires - self._now()) / SECOND), expires)

    def _mounted(self, name: str) -> str:
        return read_file(f"service account {name}", f"{self._folder}/{name}").decode("utf-8", "replace").strip()


def _asking_for(seconds: int) -> bytes:
    spec: dict[str, Json] = {"audiences": [], "expirationSeconds": seconds}
    return dumps({"apiVersion": "authentication.k8s.io/v1", "kind": TOKEN_REQUEST, "spec": spec}).encode()


def _issued(reply: Reply, where: str, asked: int, now: int) -> IssuedToken:
    """The server says how many seconds it has granted, so that its clock and ours need not agree."""
    status, spec = reply.object.get("status"), reply.object.get("spec")
    token = status.get("token") if isinstance(status, dict) else None
    if not isinstance(token, str) or not token:
        raise Unavailable(f"{where}: the answer to a request for a token has none")
    granted = spec.get("expirationSeconds") if isinstance(spec, dict) else None
    good_for = granted if isinstance(granted, int) and 0 < granted < asked else asked
    return IssuedToken(token, float(good_for), now + good_for * SECOND)


def _gives_tokens(api: Api, deadline: Deadline) -> bool:
    """Whether the server knows requests for tokens; taken for granted when it does not say."""
    (reply,) = api.read([one(CORE_RESOURCES)], deadline)
    resources = reply.object.get("resources") if reply.ok else None
    if not isinstance(resources, list):
        return True
    return any(isinstance(resource, dict) and resource.get("name") == _TOKENS for resource in resources)
