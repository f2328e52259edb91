"""`LibraryHns` over a fake of the DLLs in C: what it hands over is right in every octet, and all is given back.

On Windows (`tests/under_wine` runs this file under Wine) the fakes are expected in the system's folder, where the
plugin takes the real ones from.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.windows.hns_library import LibraryHns, system_library
from adapters.windows.seam import ENDPOINT, FAILED, NAMESPACE, NETWORK, Hns, HnsAbsent, HnsError
from contracts.hns import BRIDGE, EVERYTHING, NOBODY, VERSION, HnsContract, join, pod
from fake_hns.build import for_linux


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ctypes.CDLL]:
    if sys.platform == "win32":
        return system_library
    library = ctypes.CDLL(str(for_linux(tmp_path_factory.mktemp("fake_hns"))))
    return lambda name: library


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORTIE_FAKE_HNS", str(tmp_path / "hns.json"))
    monkeypatch.setenv("TORTIE_FAKE_HNS_FAIL", "")
    return tmp_path / "hns.json"


@pytest.fixture
def hns(load: Callable[[str], ctypes.CDLL], state: Path) -> Iterator[Hns]:
    """After each test the fake has no complaint, and the caller holds nothing of its."""
    yield LibraryHns(load)
    journal = state.with_name("hns.json.journal")
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    assert [line for line in lines if " BAD " in line] == []
    assert load("computenetwork").FakeHnsOutstanding() == 0


class TestLibraryHns(HnsContract):
    @pytest.fixture
    def run_container(self, state: Path) -> Callable[[str], None]:
        def run(container: str) -> None:
            known = json.loads(state.read_text()) if state.exists() else {}
            state.write_text(json.dumps({**known, "Containers": [container]}))

        return run


class TestRefusals:
    @pytest.mark.parametrize(
        ("function", "verb"),
        [
            ("HcnEnumerateEndpoints", lambda hns, network, endpoint, space: hns.enumerate(ENDPOINT, EVERYTHING)),
            (
                "HcnOpenNetwork",
                lambda hns, network, endpoint, space: hns.create(ENDPOINT, pod("b", "10.0.1.5"), network),
            ),
            (
                "HcnCreateEndpoint",
                lambda hns, network, endpoint, space: hns.create(ENDPOINT, pod("b", "10.0.1.5"), network),
            ),
            (
                "HcnQueryEndpointProperties",
                lambda hns, network, endpoint, space: hns.create(ENDPOINT, pod("b", "10.0.1.5"), network),
            ),
            (
                "HcnQueryNetworkProperties",
                lambda hns, network, endpoint, space: hns.query(NETWORK, network, EVERYTHING),
            ),
            ("HcnModifyNamespace", lambda hns, network, endpoint, space: hns.modify(NAMESPACE, space, join(endpoint))),
            ("HcnDeleteEndpoint", lambda hns, network, endpoint, space: hns.delete(ENDPOINT, endpoint)),
        ],
    )
    def test_whatever_function_says_no_nothing_is_held(
        self, hns: Hns, monkeypatch: pytest.MonkeyPatch, function: str, verb: Callable[[Hns, str, str, str], object]
    ) -> None:
        network = hns.call("POST", "/networks/", BRIDGE)["ID"]
        endpoint = hns.create(ENDPOINT, pod(), network)["ID"]
        space = hns.create(NAMESPACE, VERSION)["ID"]
        monkeypatch.setenv("TORTIE_FAKE_HNS_FAIL", f"{function}=0x80070005")
        with pytest.raises(HnsError) as refusal:
            verb(hns, network, endpoint, space)
        assert refusal.value.hresult == 0x80070005
        assert refusal.value.operation == function
        assert '"ErrorCode":2147942405' in refusal.value.record
        assert str(refusal.value).endswith("(HRESULT 0x80070005)")

    def test_a_container_is_closed_when_it_takes_no_endpoint(self, hns: Hns, state: Path) -> None:
        state.write_text('{"Containers": ["sandbox-1"]}')
        with pytest.raises(HnsError, match=r"HcsModifyComputeSystem: .*The endpoint was not found"):
            hns.attach_container("sandbox-1", NOBODY)

    @pytest.mark.parametrize("hresult", ["0x80004005", "0x800106BA"])
    def test_v1_refuses_in_its_answer_or_without_one(
        self, hns: Hns, monkeypatch: pytest.MonkeyPatch, hresult: str
    ) -> None:
        monkeypatch.setenv("TORTIE_FAKE_HNS_FAIL", f"HNSCall GET /networks/={hresult}")
        with pytest.raises(HnsError, match=r"^HNSCall GET /networks/") as refusal:
            hns.call("GET", "/networks/")
        assert refusal.value.hresult == int(hresult, 16)

    @pytest.mark.parametrize("identity", ["none", "", "0F0E0D0C-0B0A-0908-0706-0504030201", "container:4711"])
    def test_an_id_that_is_no_guid(self, hns: Hns, identity: str) -> None:
        with pytest.raises(HnsError, match="is no GUID"):
            hns.query(NAMESPACE, identity, EVERYTHING)

    @pytest.mark.parametrize("text", ["/networks/\0", "/networks/\ud800"])
    def test_a_text_that_utf16_cannot_carry_whole(self, hns: Hns, text: str) -> None:
        with pytest.raises(HnsError, match="HRESULT 0x80070057"):
            hns.call("GET", text)


class TestWithoutTheService:
    def test_a_machine_without_the_dll(self) -> None:
        with pytest.raises(HnsAbsent, match="HNSCall: this Windows does not offer it"):
            LibraryHns(lambda name: system_library(f"no-such-{name}")).call("GET", "/networks/")

    def test_a_dll_without_the_function(self) -> None:
        another = system_library("kernel32") if sys.platform == "win32" else ctypes.CDLL(None)
        with pytest.raises(HnsAbsent, match="HcnOpenNetwork"):
            LibraryHns(lambda name: another).query(NETWORK, NOBODY, EVERYTHING)


class TestOddAnswers:
    """Of a service that does not keep its own word: `answer` is what `HNSCall` gives, one after the other."""

    @pytest.mark.parametrize(
        ("answer", "complaint"),
        [
            ("", "the answer is no JSON: ''"),
            ("<html>", "the answer is no JSON: '<html>'"),
            ("[]", r"the answer is no object: '\[\]'"),
            ("{}", "HNSCall GET /x"),
            ('{"Success":false,"Error":17}', "HNSCall GET /x"),
        ],
    )
    def test_the_answer_is_shown(self, answer: str, complaint: str) -> None:
        library = Answering(answer)
        with pytest.raises(HnsError, match=complaint) as refusal:
            LibraryHns(lambda name: library).call("GET", "/x")
        assert refusal.value.hresult == FAILED


class Answering:
    """A DLL of one function, and its memory, which stays."""

    def __init__(self, answer: str) -> None:
        self._text = ctypes.create_string_buffer(answer.encode("utf-16-le") + b"\0\0")

    def __getitem__(self, name: str) -> object:
        address = ctypes.addressof(self._text)

        def answer(method: object, path: object, request: object, into: ctypes._Pointer[ctypes.c_void_p]) -> int:
            into[0] = ctypes.c_void_p(address)
            return 0

        kinds = [ctypes.c_char_p] * 3
        if name == "HNSCall":
            return ctypes.CFUNCTYPE(ctypes.c_uint32, *kinds, ctypes.POINTER(ctypes.c_void_p))(answer)
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda memory: None)
