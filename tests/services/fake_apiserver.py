"""A little kube-apiserver in memory behind the transport seam: objects with resource versions, answers in its words.

It keeps what the product relies on: creation, replacement and deletion under preconditions, the one patch that is
made, lists with pages and label selectors. It checks no schema. What it answers was compared with a real server
(tests/integration/contracts runs the same suites over both).

    server = FakeApiserver("v1")
    server.create("/api/v1/namespaces", {"metadata": {"name": "web", "labels": {"team": "blue"}}})
    store = KubernetesDatastore(Api(server.transport(), clock), ...)
    server.before = lambda request: server.failure(429, "slow down", {"retry-after": "1"})

A test may use it like `services.kube_client.KubeClient`. `Recorded` is any transport, with a list of its requests.
"""

from __future__ import annotations

import json
import re
import uuid
from copy import deepcopy
from urllib.parse import unquote

from adapters.kubernetes.transport.seam import (
    JSON,
    STRATEGIC_MERGE_PATCH,
    ApiTransport,
    ApiTransportError,
    HttpAnswer,
    HttpRequest,
)

GROUPS = {"v1": "crd.projectcalico.org/v1", "v3": "projectcalico.org/v3", "kubevirt": "kubevirt.io/v1"}
_KINDS = {
    "ippools": "IPPool",
    "ipreservations": "IPReservation",
    "ipamblocks": "IPAMBlock",
    "ipamhandles": "IPAMHandle",
    "blockaffinities": "BlockAffinity",
    "ipamconfigs": "IPAMConfig",
    "ipamconfigurations": "IPAMConfiguration",
    "clusterinformations": "ClusterInformation",
    "virtualmachines": "VirtualMachine",
    "virtualmachineinstances": "VirtualMachineInstance",
    "namespaces": "Namespace",
    "nodes": "Node",
    "pods": "Pod",
    "serviceaccounts": "ServiceAccount",
}
_ONLY = {"ipamconfigs": "v1", "ipamconfigurations": "v3"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_OLD_LIST = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
)


class Failure(Exception):
    def __init__(self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason, causes


class Place:
    """What a path means: a collection (name ""), an object, or its status."""

    def __init__(self, path: str) -> None:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        self.group, parts = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        self.namespace = ""
        if len(parts) > 2 and parts[0] == "namespaces":
            self.namespace, parts = parts[1], parts[2:]
        self.plural, self.name, self.subresource = (*parts, "", "", "")[:3]

    @property
    def resource(self) -> str:
        """As errors name it."""
        domain = self.group.partition("/")[0]
        return self.plural if self.group == "v1" else f"{self.plural}.{domain}"

    @property
    def kind(self) -> str:
        domain = self.group.partition("/")[0]
        return _KINDS[self.plural] if self.group == "v1" else f"{_KINDS[self.plural]}.{domain}"

    def key(self, name: str = "") -> tuple[str, str, str, str]:
        return self.group, self.plural, self.namespace, name or self.name


class FakeApiserver:
    """`groups` are keys of GROUPS. `before` sees each request and may answer or raise; `after` may lose the answer."""

    def __init__(self, *groups: str) -> None:
        self.groups = [GROUPS[one] for one in groups]
        self.objects: dict[tuple[str, str, str, str], dict] = {}
        self.before = lambda request: None
        self.after = lambda request, answer: None
        self.tokens_expire = False
        self._versions = 100

    def transport(self) -> FakeTransport:
        return FakeTransport(self)

    # --- what a test does past the product: the verbs of KubeClient --------------------------------------------------

    def find(self, path: str) -> dict | None:
        return deepcopy(self.objects.get(Place(path).key()))

    def get(self, path: str) -> dict:
        return self._said_ok("GET", path)

    def create(self, path: str, made: dict) -> dict:
        return self._said_ok("POST", path, made)

    def put(self, path: str, changed: dict) -> dict:
        return self._said_ok("PUT", path, changed)

    def patch(self, path: str, change: dict) -> dict:
        """A merge patch of anything, the status included."""
        place = Place(path)
        held = self.objects[place.key()]
        return deepcopy(self._store(place, _merged(held, change), held))

    def delete(self, path: str) -> None:
        self._said_ok("DELETE", path)

    def _said_ok(self, method: str, path: str, body: dict | None = None) -> dict:
        answer = self._answer(HttpRequest(method, path, body=b"" if body is None else json.dumps(body).encode()))
        found = json.loads(answer.body)
        assert answer.status < 300, found
        return found

    @staticmethod
    def failure(code: int, message: str = "", headers: dict | None = None, reason: str = "") -> HttpAnswer:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
        return HttpAnswer(code, json.dumps(status | {"message": message, "reason": reason}).encode(), headers or {})

    # --- answering ---------------------------------------------------------------------------------------------------

    def answer(self, request: HttpRequest) -> HttpAnswer:
        early = self.before(request)
        if early is not None:
            return early
        answer = self._answer(request)
        self.after(request, answer)
        return answer

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        try:
            if request.path == "/apis":
                return self._said(200, self._discovery())
            place = Place(request.path)
            served = place.group == "v1" or place.group in self.groups
            if not served:
                return HttpAnswer(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"})
            only = _ONLY.get(place.plural)
            if place.plural not in _KINDS or (only and GROUPS[only] != place.group):
                raise Failure(404, "NotFound", "the server could not find the requested resource")
            code, found = getattr(self, f"_{request.method.lower()}")(place, request)
        except Failure as error:
            return self._said(error.code, self._status(error))
        return self._said(code, found)

    @staticmethod
    def _said(code: int, found: dict) -> HttpAnswer:
        return HttpAnswer(code, json.dumps(found).encode(), {"content-type": "application/json"})

    @staticmethod
    def _status(error: Failure) -> dict:
        found = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(error)}
        details = {"details": {"causes": error.causes}} if error.causes else {}
        return found | {"reason": error.reason, "code": error.code} | details

    def _discovery(self) -> dict:
        names = sorted({group.partition("/")[0] for group in self.groups} | {"apps"})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": name} for name in names]}

    def _held(self, place: Place) -> dict:
        held = self.objects.get(place.key())
        if held is None:
            raise Failure(404, "NotFound", f'{place.resource} "{place.name}" not found')
        return held

    def _get(self, place: Place, request: HttpRequest):
        return (200, self._held(place)) if place.name else (200, self._list(place, dict(request.query)))

    def _list(self, place: Place, query: dict[str, str]) -> dict:
        found = [
            held
            for key, held in sorted(self.objects.items())
            if key[:2] == (place.group, place.plural)
            and place.namespace in ("", key[2])
            and _selected(held, query.get("labelSelector", ""))
            and _of_node(held, query.get("fieldSelector", ""))
        ]
        token = query.get("continue", "")
        if token and "resourceVersion" in query:
            raise Failure(400, "BadRequest", "specifying resource version is not allowed when using continue")
        if token and not token.startswith(f"{self._versions}/") and self.tokens_expire:
            raise Failure(410, "Expired", _OLD_LIST)
        begin = int(token.partition("/")[2]) if token else 0
        end = begin + int(query["limit"]) if "limit" in query else len(found)
        more = {"continue": f"{self._versions}/{end}", "remainingItemCount": len(found) - end}
        metadata = {"resourceVersion": str(self._versions)} | (more if end < len(found) else {})
        kind = f"{_KINDS[place.plural]}List"
        return {"kind": kind, "apiVersion": place.group, "metadata": metadata, "items": found[begin:end]}

    def _post(self, place: Place, request: HttpRequest):
        given = self._body(request)
        name = given["metadata"].get("name", "")
        if not _NAME.fullmatch(name) or len(name) > 253:
            message = f'{place.kind} "{name}" is invalid: metadata.name: Invalid value: "{name}": {_NAME_RULE}'
            raise Failure(422, "Invalid", message, [{"reason": "FieldValueInvalid", "field": "metadata.name"}])
        if "resourceVersion" in given["metadata"]:
            raise Failure(500, "", "resourceVersion should not be set on objects to be created")
        if place.key(name) in self.objects:
            raise Failure(409, "AlreadyExists", f'{place.resource} "{name}" already exists')
        place.name = name
        return 201, self._store(place, given, None)

    def _put(self, place: Place, request: HttpRequest):
        given = self._body(request)
        held = self._held(place)
        name, version = given["metadata"].get("name", ""), given["metadata"].get("resourceVersion", "")
        if name != place.name:
            told = f"the name of the object ({name}) does not match the name on the URL ({place.name})"
            raise Failure(400, "BadRequest", told)
        if not version:
            rule = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            cause = {"reason": "FieldValueInvalid", "field": "metadata.resourceVersion"}
            raise Failure(422, "Invalid", f'{place.resource} "{name}" is invalid: {rule}', [cause])
        self._check_identity(place, given["metadata"], held["metadata"])
        return 200, self._store(place, given, held)

    def _delete(self, place: Place, request: HttpRequest):
        held = self._held(place)
        wanted = (json.loads(request.body) if request.body else {}).get("preconditions", {})
        for field, shown, note in (
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ):
            has = held["metadata"][field]
            if wanted.get(field, has) != has:
                told = f"the {shown} in the precondition ({wanted[field]}) does not match the {shown} in record ({has})"
                self._refuse_change(place, f"{told}. The object might have been {note}")
        del self.objects[place.key()]
        details = {"name": place.name, "kind": place.plural, "uid": held["metadata"]["uid"]}
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _patch(self, place: Place, request: HttpRequest):
        """Metadata of a status patch, as far as we change it."""
        assert request.content_type == STRATEGIC_MERGE_PATCH
        assert place.subresource == "status"
        held = self._held(place)
        wanted = json.loads(request.body)["metadata"]
        self._check_identity(place, wanted, held["metadata"], patch=True)
        changed = deepcopy(held)
        changed["metadata"].setdefault("annotations", {}).update(wanted.get("annotations", {}))
        return 200, held if changed == held else self._store(place, changed, held)

    def _check_identity(self, place: Place, wanted: dict, has: dict, *, patch: bool = False) -> None:
        uid = wanted.get("uid") or has["uid"]
        if uid != has["uid"] and not patch:
            told = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {has['uid']}"
            self._refuse_change(place, told)
        if wanted.get("resourceVersion", has["resourceVersion"]) != has["resourceVersion"]:
            self._refuse_change(place, _MODIFIED)
        if uid != has["uid"]:
            rule = f'metadata.uid: Invalid value: "{uid}": field is immutable'
            cause = {"reason": "FieldValueInvalid", "field": "metadata.uid"}
            raise Failure(422, "Invalid", f'{place.kind} "{place.name}" is invalid: {rule}', [cause])

    @staticmethod
    def _refuse_change(place: Place, why: str) -> None:
        raise Failure(409, "Conflict", f'Operation cannot be fulfilled on {place.resource} "{place.name}": {why}')

    @staticmethod
    def _body(request: HttpRequest) -> dict:
        assert request.content_type == JSON
        found = json.loads(request.body)
        assert isinstance(found["metadata"], dict)
        return found

    def _store(self, place: Place, given: dict, held: dict | None) -> dict:
        """An equal replacement changes nothing, not even the version."""
        metadata = given.setdefault("metadata", {})
        had = held["metadata"] if held else {}
        metadata["name"] = place.name
        if place.namespace:
            metadata["namespace"] = place.namespace
        metadata["uid"] = had.get("uid") or str(uuid.uuid4())
        metadata["creationTimestamp"] = had.get("creationTimestamp") or "2026-11-29T13:06:12Z"
        metadata["resourceVersion"] = had.get("resourceVersion", "")
        given.setdefault("kind", _KINDS[place.plural])
        given.setdefault("apiVersion", place.group)
        if held is None or given != held:
            self._versions += 1
            metadata["resourceVersion"] = str(self._versions)
        self.objects[place.key()] = given
        return given


class Recorded(ApiTransport):
    """`log` has every request as "GET /path", `rounds` how many there were in each call."""

    def __init__(self, transport: ApiTransport) -> None:
        self.server = transport.server
        self._transport = transport
        self.requests: list[HttpRequest] = []
        self.rounds: list[int] = []

    @property
    def log(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.requests]

    def send(self, requests, seconds):
        self.requests += requests
        self.rounds.append(len(requests))
        return self._transport.send(requests, seconds)

    def renew(self):
        return self._transport.renew()

    def close(self):
        self._transport.close()


class FakeTransport(ApiTransport):
    """`fresh` is what the next `renew` finds: True for other credentials than before."""

    def __init__(self, server: FakeApiserver) -> None:
        self.server = "https://api.test:6443"
        self._server = server
        self.fresh = False
        self.renewals = 0
        self.seconds: list[float] = []

    def send(self, requests, seconds):
        self.seconds.append(seconds)
        return [self._server.answer(request) for request in requests]

    def renew(self):
        self.renewals += 1
        return self.fresh

    def close(self):
        pass


def _of_node(held: dict, selector: str) -> bool:
    """The one field that pods are asked for by."""
    name, _, node = selector.partition("=")
    assert name in ("", "spec.nodeName"), selector
    return not selector or held.get("spec", {}).get("nodeName", "") == node


def _selected(held: dict, selector: str) -> bool:
    labels = held["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        name, equals, value = term.partition("=")
        if equals:
            if labels.get(name) != value:
                return False
        elif name.startswith("!"):
            if name[1:] in labels:
                return False
        elif name not in labels:
            return False
    return True


def _merged(held: dict, change: dict) -> dict:
    found = deepcopy(held)
    for name, value in change.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name) or {}, value) if isinstance(value, dict) else deepcopy(value)
    return found


def lost(message: str = "connection reset", *, harmless: bool = False, timed_out: bool = False) -> ApiTransportError:
    return ApiTransportError(f"https://api.test:6443: {message}", harmless=harmless, timed_out=timed_out)
