"""A plugin for a chain: it writes down what the runtime sends, passes the result on, and fails when told to.

Its folder is the one that it lies in: `calls.jsonl` has a line per call; a file `fail-ADD` or `fail-DEL` makes that
verb fail with the file's text. Invariant: without such a file nothing depends on it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path


def main():
    folder = Path(__file__).resolve().parent
    verb, conf = os.environ.get("CNI_COMMAND", ""), json.loads(sys.stdin.read() or "{}")
    call = {name: value for name, value in os.environ.items() if name.startswith("CNI_")}
    with (folder / "calls.jsonl").open("a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(json.dumps({"at": time.time(), "environment": call, "conf": conf}) + "\n")
    if (folder / f"fail-{verb}").exists():
        text = (folder / f"fail-{verb}").read_text()
        print(json.dumps({"cniVersion": conf.get("cniVersion"), "code": 100, "msg": text}))
        sys.exit(1)
    if verb == "VERSION":
        print(json.dumps({"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}))
    elif verb == "ADD":
        print(json.dumps(conf["prevResult"]))


main()
