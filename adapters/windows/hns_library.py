"""The seam to HNS over its DLLs: texts in UTF-16, GUIDs, handles and memory that somebody has to give back.

Signatures are those of Microsoft's computenetwork.h, and of vmcompute.dll, which has no header: `HNSCall(method, path,
request, &response)`, `HcsOpenComputeSystem(id, &system, &result)`, `HcsModifyComputeSystem(system, text, &result)`. All
answer an HRESULT, and every text that they hand out is freed with CoTaskMemFree, also that of an error.

Invariant: whatever a call hands out is taken over before its HRESULT is looked at, so that nothing is lost on an error;
a handle is closed where it was opened, in a `finally`. DLLs come from the system's own folder, never from the working
directory or PATH. On 64-bit Windows there is one calling convention, so `CDLL` does for all of them.
"""

from __future__ import annotations

import ctypes
from ctypes import CDLL, POINTER, byref, c_uint32, c_void_p

from adapters.windows.seam import ENDPOINT, FAILED, NETWORK, Hns, HnsAbsent, HnsError, hns_error
from domain.json_text import JsonError, dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from adapters.windows.seam import Document

_SYSTEM_FOLDER_ONLY = 0x800  # LOAD_LIBRARY_SEARCH_SYSTEM32
_BAD_ARGUMENT = 0x80070057  # E_INVALIDARG
_HCN, _HNS, _MEMORY = "computenetwork", "vmcompute", "combase"
_EVERYTHING: Document = {"SchemaVersion": {"Major": 2, "Minor": 0}, "Flags": 0}


class Guid(ctypes.Structure):
    _fields_ = (
        ("Data1", ctypes.c_uint32),
        ("Data2", ctypes.c_uint16),
        ("Data3", ctypes.c_uint16),
        ("Data4", ctypes.c_ubyte * 8),
    )


_TEXT, _OUT = ctypes.c_char_p, POINTER(c_void_p)  # PCWSTR, as octets; PWSTR* and pointers to handles
_ID, _HANDLE = POINTER(Guid), c_void_p

# What stands behind `Hcn<verb><kind>`, by verb.
_HCN_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Enumerate": (_TEXT, _OUT, _OUT),
    "Create": (_ID, _TEXT, _OUT, _OUT),
    "Open": (_ID, _OUT, _OUT),
    "Modify": (_HANDLE, _TEXT, _OUT),
    "Query": (_HANDLE, _TEXT, _OUT, _OUT),
    "Delete": (_ID, _OUT),
    "Close": (_HANDLE,),
}
_OTHERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "HcnCreateEndpoint": (_HCN, (_HANDLE, *_HCN_ARGUMENTS["Create"])),
    "HNSCall": (_HNS, (_TEXT, _TEXT, _TEXT, _OUT)),
    "HcsOpenComputeSystem": (_HNS, (_TEXT, _OUT, _OUT)),
    "HcsModifyComputeSystem": (_HNS, (_HANDLE, _TEXT, _OUT)),
    "HcsCloseComputeSystem": (_HNS, (_HANDLE,)),
    "CoTaskMemFree": (_MEMORY, (c_void_p,)),
}


def system_library(name: str) -> CDLL:
    return CDLL(f"{name}.dll", winmode=_SYSTEM_FOLDER_ONLY)


class LibraryHns(Hns):
    """`load` finds a DLL by its name without `.dll`."""

    def __init__(self, load: Callable[[str], CDLL] = system_library) -> None:
        self._load = load
        self._known: dict[str, Any] = {}

    # --- v1 ---------------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, request: Document | None = None) -> Any:
        operation = f"HNSCall {method} {path}"
        texts = [_wide(operation, text) for text in (method, path, "" if request is None else dumps(request))]
        response = c_void_p()
        hresult = self._function("HNSCall")(*texts, byref(response))
        said = self._taken(response)
        if _failed(hresult):
            raise hns_error(operation, hresult, said)
        answer = _document(operation, said)
        if not answer.get("Success"):
            code = answer.get("ErrorCode")
            reason = answer.get("Error")
            code = code if isinstance(code, int) and code else FAILED
            raise hns_error(operation, code, reason.strip() if isinstance(reason, str) else said)
        return answer.get("Output")

    def attach_container(self, container: str, endpoint: str) -> None:
        system = c_void_p()
        request: Document = {"ResourceType": "Network", "RequestType": "Add", "Settings": endpoint}
        self._asked("HcsOpenComputeSystem", _wide("HcsOpenComputeSystem", container), byref(system))
        try:
            self._asked("HcsModifyComputeSystem", system, _wide("HcsModifyComputeSystem", dumps(request)))
        finally:
            self._function("HcsCloseComputeSystem")(system)

    # --- v2 ---------------------------------------------------------------------------------------------------------

    def enumerate(self, kind: str, query: Document) -> tuple[str, ...]:
        operation = f"HcnEnumerate{kind}s"
        found = _parsed(operation, self._answer(operation, _wide(operation, dumps(query))))
        return tuple(str(one) for one in found) if isinstance(found, list) else ()

    def query(self, kind: str, identity: str, query: Document) -> Document:
        with _Opened(self, kind, identity) as handle:
            return self._properties(kind, handle, query)

    def create(self, kind: str, settings: Document, network: str = "") -> Document:
        if kind == ENDPOINT:
            with _Opened(self, NETWORK, network) as parent:
                return self._created(kind, [parent], settings)
        return self._created(kind, [], settings)

    def modify(self, kind: str, identity: str, request: Document) -> None:
        operation = f"HcnModify{kind}"
        with _Opened(self, kind, identity) as handle:
            self._asked(operation, handle, _wide(operation, dumps(request)))

    def delete(self, kind: str, identity: str) -> None:
        operation = f"HcnDelete{kind}"
        self._asked(operation, byref(_guid(operation, identity)))

    def _created(self, kind: str, before: Sequence[c_void_p], settings: Document) -> Document:
        """The service chooses the id where the settings have none: a GUID of zeros asks for it."""
        operation, handle = f"HcnCreate{kind}", c_void_p()
        self._asked(operation, *before, byref(Guid()), _wide(operation, dumps(settings)), byref(handle))
        try:
            return self._properties(kind, handle, _EVERYTHING)
        finally:
            self.close(kind, handle)

    def _properties(self, kind: str, handle: c_void_p, query: Document) -> Document:
        operation = f"HcnQuery{kind}Properties"
        return _document(operation, self._answer(operation, handle, _wide(operation, dumps(query))))

    def open(self, kind: str, identity: str) -> c_void_p:
        operation, handle = f"HcnOpen{kind}", c_void_p()
        self._asked(operation, byref(_guid(operation, identity)), byref(handle))
        return handle

    def close(self, kind: str, handle: c_void_p) -> None:
        """What closing answers helps nobody: there is no handle afterwards in any case."""
        self._function(f"HcnClose{kind}")(handle)

    # --- calls ------------------------------------------------------------------------------------------------------

    def _asked(self, operation: str, *arguments: object) -> None:
        record = c_void_p()
        hresult = self._function(operation)(*arguments, byref(record))
        said = self._taken(record)
        if _failed(hresult):
            raise hns_error(operation, hresult, said)

    def _answer(self, operation: str, *arguments: object) -> str:
        """The text that a call hands out before the error record."""
        text = c_void_p()
        try:
            self._asked(operation, *arguments, byref(text))
        finally:
            said = self._taken(text)
        return said

    def _taken(self, text: c_void_p) -> str:
        """The text, whose memory is given back here; "" for none."""
        if not text.value:
            return ""
        try:
            return _narrow(text.value)
        finally:
            self._function("CoTaskMemFree")(text)

    def _function(self, name: str) -> Any:
        known = self._known.get(name)
        if known is None:
            library, arguments = _signature(name)
            try:
                known = self._load(library)[name]
            except (OSError, AttributeError) as error:
                raise HnsAbsent(name, f"this Windows does not offer it: {error}") from error
            known.restype = None if name == "CoTaskMemFree" else c_uint32
            known.argtypes = arguments
            self._known[name] = known
        return known


class _Opened:
    """A handle for as long as a block runs."""

    def __init__(self, hns: LibraryHns, kind: str, identity: str) -> None:
        self._hns, self._kind, self._identity = hns, kind, identity

    def __enter__(self) -> c_void_p:
        self._handle = self._hns.open(self._kind, self._identity)
        return self._handle

    def __exit__(self, *_: object) -> None:
        self._hns.close(self._kind, self._handle)


def _signature(name: str) -> tuple[str, tuple[Any, ...]]:
    """The DLL that has a function, and the types of its arguments."""
    if name in _OTHERS:
        return _OTHERS[name]
    return _HCN, next(arguments for verb, arguments in _HCN_ARGUMENTS.items() if name.startswith(verb, 3))


def _failed(hresult: int) -> bool:
    """The highest bit; other numbers than 0 without it are successes, too."""
    return bool(hresult & 0x80000000)


def _wide(operation: str, text: str) -> bytes:
    """With its NUL of two octets: Python itself puts one more behind."""
    try:
        wide = text.encode("utf-16-le")
    except UnicodeEncodeError as error:
        raise hns_error(operation, _BAD_ARGUMENT, f"{text!r} is no Unicode text") from error
    if "\0" in text:
        raise hns_error(operation, _BAD_ARGUMENT, f"{text!r} has a NUL in it")
    return wide + b"\0"


def _narrow(address: int) -> str:
    """The text at an address, up to its NUL. `wchar_t`, and so `ctypes.wstring_at`, is not UTF-16 everywhere."""
    units = ctypes.cast(address, POINTER(ctypes.c_uint16))
    length = 0
    while units[length]:
        length += 1
    return ctypes.string_at(address, 2 * length).decode("utf-16-le", "replace")


def _guid(operation: str, identity: str) -> Guid:
    """Its first three fields are numbers, which the text has in the other order of octets."""
    try:
        octets = bytes.fromhex(identity.strip("{}").replace("-", ""))
    except ValueError:
        octets = b""
    if len(octets) != ctypes.sizeof(Guid):
        raise hns_error(operation, _BAD_ARGUMENT, f"{identity!r} is no GUID")
    return Guid.from_buffer_copy(octets[3::-1] + octets[5:3:-1] + octets[7:5:-1] + octets[8:])


def _parsed(operation: str, text: str) -> Any:
    try:
        return parse(text)
    except JsonError as error:
        raise HnsError(operation, FAILED, f"the answer is no JSON: {text!r}") from error


def _document(operation: str, text: str) -> Document:
    document = _parsed(operation, text)
    if not isinstance(document, dict):
        raise HnsError(operation, FAILED, f"the answer is no object: {text!r}")
    return document
