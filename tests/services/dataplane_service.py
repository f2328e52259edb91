"""A gRPC dataplane as an operator may have one: a process that records what it is asked and answers as it is told.

It is a process of its own because the library does not survive a fork, and so that it can die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MAC = "00:11:22:33:44:55"


class DataplaneService:
    """`with DataplaneService("unix:///path") as service:`. `target` is where it really listens (`127.0.0.1:0`)."""

    def __init__(self, listen: str, **modes: str) -> None:
        self._listen = listen
        self._modes = modes
        self.target = ""

    def __enter__(self) -> DataplaneService:
        self.process = subprocess.Popen(
            [sys.executable, __file__, self._listen],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT), "GRPC_VERBOSITY": "NONE"},
        )
        port = self._say(self._modes)
        self.target = self._listen.replace(":0", f":{port}") if self._listen.endswith(":0") else self._listen
        return self

    def answer(self, **modes: str) -> None:
        """How from now on: `Add="ok"`, `Del="fail"`, … (see `_answer`)."""
        self._say(modes)

    def _say(self, message: dict[str, str]) -> Any:
        print(json.dumps(message), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """(method, request) for each so far; fields that are not sent are not there."""
        return [(method, request) for method, request in self._say({"report": ""})]

    def methods(self) -> list[str]:
        return [method for method, _ in self.calls()]

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


# --- the other process ----------------------------------------------------------------------------------------------


def _answer(context: Any, mode: str, successful: Any, reply: Any) -> Any:
    """`ok`, `ok:<mac>`, `fail:<text>`, `status:<NAME>:<text>`, `hang`, `die`."""
    import grpc

    kind, _, rest = mode.partition(":")
    if kind == "die":
        os._exit(1)
    if kind == "hang":
        while context.is_active():
            time.sleep(0.02)
    if kind == "status":
        name, _, text = rest.partition(":")
        context.abort(grpc.StatusCode[name], text)
    return successful if kind == "ok" else reply(successful=False, error_message=rest)


def serve(listen: str) -> None:
    import grpc
    from google.protobuf.json_format import MessageToDict

    from adapters.grpc import cni_dataplane_pb2 as wire

    modes = {"Add": "ok", "Del": "ok"}
    calls: list[tuple[str, dict[str, Any]]] = []
    calling = threading.Lock()

    def record(method: str, request: Any) -> str:
        with calling:
            calls.append((method, MessageToDict(request, preserving_proto_field_name=True)))
        return modes[method]

    def add(request: Any, context: Any) -> Any:
        mode = record("Add", request)
        mac = mode.partition(":")[2] if mode.startswith("ok:") else MAC
        name = request.desired_host_interface_name
        success = wire.AddReply(successful=True, host_interface_name=name, container_mac=mac)
        return _answer(context, mode, success, wire.AddReply)

    def delete(request: Any, context: Any) -> Any:
        return _answer(context, record("Del", request), wire.DelReply(successful=True), wire.DelReply)

    methods = {
        "Add": grpc.unary_unary_rpc_method_handler(add, wire.AddRequest.FromString, wire.AddReply.SerializeToString),
        "Del": grpc.unary_unary_rpc_method_handler(delete, wire.DelRequest.FromString, wire.DelReply.SerializeToString),
    }
    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("cni.CniDataplane", methods),))
    port = server.add_insecure_port(listen)
    server.start()
    for line in sys.stdin:
        message = json.loads(line)
        if "report" in message:
            with calling:
                print(json.dumps(calls), flush=True)
        else:
            modes.update(message)
            print(port, flush=True)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
