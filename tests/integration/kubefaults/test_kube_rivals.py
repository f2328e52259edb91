"""Others write a pod, or forbid it to be written, while an ADD is at work on it (R07; a webhook that says no)."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from integration.kubefaults.kube_rig import TRY_AGAIN_LATER, KubeRig, text_of
from integration.kubefaults.test_kube_faults import RACES
from integration.plugin.kubernetes_store import POD_IPS
from patience import until
from services.etcd import Authority
from services.http_stub import Asked, HttpStub, reply
from services.kube_client import Refused
from services.request_faults import answer, at, before, status

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
TO_POD = at("PATCH", "/pods/")


def test_r07_what_others_write_meanwhile_stays(rig: KubeRig) -> None:
    """Between our reading and our writing a label and annotations appear, and one changes."""
    sandbox = rig.pod(labels={"app": "web"}, annotations={"mine": "old"})
    path = f"/api/v1/namespaces/{sandbox.namespace}/pods/{sandbox.pod}"
    change = {"metadata": {"labels": {"x": "1"}, "annotations": {"mine": "new", "theirs": "yes"}}}
    rig.proxy.arm(TO_POD, before(lambda: rig.cluster.client.patch(path, change)))
    result = rig.add(sandbox)
    rig.networked(sandbox, result)
    metadata = rig.cluster.pod(sandbox.namespace, sandbox.pod)["metadata"]
    assert metadata["labels"] == {"app": "web", "x": "1"}
    assert {name: metadata["annotations"][name] for name in ("mine", "theirs")} == {"mine": "new", "theirs": "yes"}

    rig.proxy.arm(TO_POD, before(lambda: rig.cluster.client.patch(path, {"metadata": {"labels": {"y": "2"}}})), times=2)
    rig.delete(sandbox).silent()
    assert len(rig.proxy.met) == 2
    rig.gone(sandbox)
    assert rig.cluster.pod(sandbox.namespace, sandbox.pod)["metadata"]["labels"] == {"app": "web", "x": "1", "y": "2"}
    rig.everything_agrees()


@pytest.mark.parametrize(("times", "tries"), [(2, 3), (4, 5)])
def test_r07_a_lost_race_is_run_again(v1: KubeRig, times: int, tries: int) -> None:
    sandbox = v1.pod()
    v1.proxy.arm(TO_POD, RACES["PATCH"], times=times)
    result = v1.add(sandbox)
    assert len([asked for asked in v1.proxy.asked if TO_POD(asked)]) == tries
    v1.networked(sandbox, result)


def test_r07_after_five_tries_the_call_fails_and_leaves_nothing(v1: KubeRig) -> None:
    sandbox = v1.pod()
    v1.proxy.arm(TO_POD, RACES["PATCH"])
    v1.add(sandbox).error(999, "update conflict")
    assert len(v1.proxy.met) == 5
    v1.proxy.forget()
    v1.gone(sandbox)
    v1.networked(sandbox, v1.add(sandbox))
    v1.proxy.arm(TO_POD, RACES["PATCH"])
    v1.delete(sandbox).error(999, "modified before it could be deleted")
    assert len(v1.proxy.met) == 6
    v1.offline(sandbox)
    v1.proxy.forget()
    v1.delete(sandbox).silent()
    v1.gone(sandbox)


def test_a_pod_that_is_made_again_before_our_write_is_left_alone(rig: KubeRig) -> None:
    """The late sandbox's call is refused, and takes back what it did; the new pod gets its own."""
    late = rig.pod()
    path = f"/api/v1/namespaces/{late.namespace}/pods/{late.pod}"

    def make_again() -> None:
        rig.cluster.client.delete(path)
        rig.cluster.add_pod(late.namespace, late.pod, node=rig.node)

    rig.proxy.arm(TO_POD, before(make_again), times=1)
    was = rig.cluster.pod(late.namespace, late.pod)["metadata"]["uid"]
    answer = rig.add(late)
    metadata = rig.cluster.pod(late.namespace, late.pod)["metadata"]
    assert metadata["uid"] != was
    answer.error(999, f"was made again during this call: its uid is {metadata['uid']}, not {was}")
    assert POD_IPS not in metadata.get("annotations", {})
    rig.gone(late)
    rig.delete(late).silent()
    rig.networked(late, rig.add(late))
    rig.everything_agrees()


# --- webhooks -------------------------------------------------------------------------------------------------------


def deny(asked: Asked) -> bytes:
    """An AdmissionReview's answer that says no."""
    review = json.loads(asked.body)
    no = {"uid": review["request"]["uid"], "allowed": False, "status": {"code": 403, "message": "no status today"}}
    return reply(200, json.dumps({**review, "request": None, "response": no}).encode(), Content_Type="application/json")


@contextmanager
def webhook(rig: KubeRig, folder: Path, answer_to: Any) -> Iterator[HttpStub]:
    """A webhook that is asked about every change of the status of a pod with the label `guarded`."""
    authority = Authority(folder / "webhook", "tortie test webhook")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("webhook", "IP:127.0.0.1"))

    with HttpStub(context) as stub:
        stub.answer = answer_to
        trusted = base64.b64encode(authority.ca.read_bytes()).decode()
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}
        hook = {
            "name": "guard.tortie.test",
            "clientConfig": {"url": stub.url + "/", "caBundle": trusted},
            "rules": [rule],
            "objectSelector": {"matchLabels": {"guarded": "yes"}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 5,
        }
        name = f"guard-{rig.net.name}"
        rig.cluster.client.create(WEBHOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
        try:
            await_webhook(rig, stub, there=True)
            yield stub
        finally:
            rig.cluster.client.delete(f"{WEBHOOKS}/{name}")
            await_webhook(rig, stub, there=False)


def await_webhook(rig: KubeRig, stub: HttpStub, *, there: bool) -> None:
    """The server asks it, or no more: how soon after it has been made or deleted is the server's affair."""

    def is_asked() -> bool:
        before = len(stub.asked)
        try:
            rig.cluster.set_pod_status("gold", "probe", message=f"are you there {before}")
        except Refused as error:
            assert "guard.tortie.test" in str(error)  # noqa: PT017 - it need not fail at all
        return len(stub.asked) > before

    rig.cluster.add_pod("gold", "probe", node=rig.node, labels={"guarded": "yes"})
    until(lambda: is_asked() == there, "the webhook to be asked" if there else "the webhook to be forgotten")
    rig.cluster.client.delete("/api/v1/namespaces/gold/pods/probe")


def test_a_webhook_that_forbids_the_patch_fails_the_call_cleanly(own_rig: KubeRig, tmp_path: Path) -> None:
    """The error says who forbids what; a DEL takes the device away and tells to come again until it may."""
    rig = own_rig
    free, guarded = rig.pod(), rig.pod(labels={"guarded": "yes"})
    rig.networked(free, rig.add(free))
    rig.delete(free).silent()
    with webhook(rig, tmp_path, deny):
        told = text_of(rig.add(guarded))
        assert "guard.tortie.test" in told
        assert "no status today" in told
        rig.gone(guarded)
        rig.networked(free, rig.add(free))  # it is about others
        rig.delete(free).silent()
    rig.networked(guarded, rig.add(guarded))
    with webhook(rig, tmp_path, deny):
        rig.delete(guarded).error(TRY_AGAIN_LATER, "no status today")
        rig.offline(guarded)
    rig.delete(guarded).silent()
    rig.gone(guarded)
    rig.everything_agrees()


def test_a_webhook_that_is_broken_is_something_to_try_again(v1: KubeRig, tmp_path: Path) -> None:
    guarded = v1.pod(labels={"guarded": "yes"})
    with webhook(v1, tmp_path, lambda _: reply(503, b"down")):
        v1.add(guarded).error(TRY_AGAIN_LATER, "failed calling webhook")
        v1.gone(guarded)
    v1.networked(guarded, v1.add(guarded))


@pytest.mark.parametrize("code", [400, 403, 422])
def test_any_refusal_of_the_patch_is_told_in_its_words(v1: KubeRig, code: int) -> None:
    """As other policies than webhooks answer."""
    sandbox = v1.pod()
    reasons = {400: "BadRequest", 403: "Forbidden", 422: "Invalid"}
    v1.proxy.arm(TO_POD, answer(code, status(code, reasons[code], "the policy `labels` says no")))
    v1.add(sandbox).error(999, "the policy `labels` says no")
    assert len(v1.proxy.met) == 1
    v1.proxy.forget()
    v1.gone(sandbox)
    assert POD_IPS not in v1.annotations(sandbox)
