"""Rights that a server has been told of, and grants a moment later: authorization goes by a copy of roles and bindings.

    await_rights(client, documents)                   of the documents of a manifest
    await_rights(client, documents, granted=False)    the same after they have been deleted

Invariant: when it returns, what one rule of each bound role says is allowed to its subjects, or no longer; roles come
into the copy whole.
"""

from __future__ import annotations

import time

from services.kube_client import KubeClient, Object

_LONGEST_WAIT = 120.0
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def await_rights(client: KubeClient, documents: list[Object], *, granted: bool = True) -> None:
    roles = {(one["kind"], one["metadata"]["name"]): one for one in documents if one["kind"].endswith("Role")}
    for one in documents:
        if one["kind"].endswith("Binding"):
            role = roles.get((one["roleRef"]["kind"], one["roleRef"]["name"]))
            rules = [rule for rule in role["rules"] if "resources" in rule] if role else []
            for subject in one.get("subjects", ()):
                if rules and subject["kind"] == "ServiceAccount":
                    review = _review(subject, rules[-1], one["metadata"].get("namespace", ""))
                    _await(client, review, granted=granted)


def _review(subject: Object, rule: Object, namespace: str) -> Object:
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource}
    attributes |= {"subresource": subresource, "name": rule.get("resourceNames", [""])[0], "namespace": namespace}
    spec = {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}", "resourceAttributes": attributes}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def _await(client: KubeClient, review: Object, *, granted: bool) -> None:
    ends = time.monotonic() + _LONGEST_WAIT
    while bool(client.create(_REVIEWS, review)["status"].get("allowed")) != granted:
        if time.monotonic() > ends:
            raise RuntimeError(f"waited in vain for this right to be {'granted' if granted else 'lost'}: {review}")
        time.sleep(0.02)
