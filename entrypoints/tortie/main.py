"""`tortie`: what an operator does to a datastore by hand; calicoctl's words and manifests, without a server.

    tortie init --pool 10.244.0.0/16 --pool fd00:10:244::/48
    tortie get ippools -o wide        tortie apply -f pools.yaml        tortie delete ippool default-ipv4-ippool
    tortie help get
    tortie ipam show --blocks         tortie ipam check                 tortie ipam gc
    tortie doctor

Exit code 0: done. 1: it could not be done, one line on stderr says why and what to change; or `ipam check` has found
something. 2: the command line is not understood.

Invariant: stdout has the result and nothing else.
"""

from __future__ import annotations

import os
import sys

from domain.cni.netconf import KubernetesSettings, NetConf
from entrypoints.tortie import completion
from entrypoints.tortie.answer import Answer, deliver, people, told
from entrypoints.tortie.client_config import client_config
from entrypoints.tortie.command import FAULTS
from entrypoints.tortie.command_line import parsed
from entrypoints.tortie.resources import DEFAULT_NAMESPACE
from entrypoints.tortie.session import Session
from entrypoints.wiring.datastores import setting
from entrypoints.wiring.this_program import SELF_CONTAINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from adapters.records.kinds import Kind
    from entrypoints.tortie.command import Command
    from entrypoints.wiring.container import Container
    from entrypoints.wiring.plain_container import PlainContainer

_STOPPED_BY_PIPE = 141  # what a shell reports of a process that the signal killed


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """The exit code of `tortie <arguments>`. It works on the well-known libraries unless TORTIE_TRANSPORT says else.

    The self-contained executable has none.
    """
    if SELF_CONTAINED:
        from entrypoints.wiring.plain_container import PlainContainer

        return run(arguments, environment, PlainContainer())
    from entrypoints.wiring.container import Container

    return run(arguments, {"TORTIE_TRANSPORT": "library", **environment}, Container())


def run(arguments: Sequence[str], environment: Mapping[str, str], container: Container | PlainContainer) -> int:
    """The same with the ports of a container, which is configured here."""
    if tuple(arguments[:1]) == (completion.WORD,):
        return _complete(arguments[1:], environment, container)
    try:
        options = parsed(arguments)
    except SystemExit as ended:  # argparse has said what is wrong, or has shown the help that was asked for
        return _helped(int(ended.code or 0))
    session = Session(container)
    try:
        _configure(container, options, environment)
        with session.progress():
            answer: Answer = options.command.run(options, session)
        deliver(answer.text)
        _note(answer.notes)
    except FAULTS as error:
        return _failed(told(error))
    except BrokenPipeError:
        return _unheard(_STOPPED_BY_PIPE)
    except OSError as error:
        return _unheard(_failed(f"cannot write the output: {error.strerror}"))
    finally:
        session.close()
    return answer.code


def _complete(words: Sequence[str], environment: Mapping[str, str], container: Container | PlainContainer) -> int:
    """What a shell asks when Tab is pressed; whatever goes wrong, it gets fewer answers and no error."""
    session = Session(container, completion.PATIENCE)

    def names(kind: Kind, given: Mapping[str, str]) -> list[str]:
        try:
            _configure(container, completion.options_of(given), environment)
            return completion.stored_names(kind, given.get("namespace", DEFAULT_NAMESPACE), session)
        except FAULTS:
            return []

    try:
        deliver(completion.answered(words, names))
    except (BrokenPipeError, OSError):
        return _unheard(0)
    finally:
        session.close()
    return 0


def _helped(code: int) -> int:
    """What argparse has written has not left this process yet."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return _unheard(_STOPPED_BY_PIPE)
    except OSError as error:
        return _unheard(_failed(f"cannot write the output: {error.strerror}"))
    return code


def _note(lines: Sequence[str]) -> None:
    err: TextIO | None = sys.stderr  # None as above
    try:
        if err is not None:
            err.write(people(lines))
    except OSError:  # nobody hears; the interpreter would try again at its end
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process


def _failed(why: str) -> int:
    _note([f"Error: {why}"])
    return 1


def _unheard(code: int) -> int:
    """Nobody reads stdout any more; the interpreter would complain when it flushes at its end."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as the process
    return code


def _configure(container: Container | PlainContainer, options: Namespace, environment: Mapping[str, str]) -> None:
    """A path of an embedded datastore on the command line settles it; else file and environment do."""
    command: Command = options.command
    path: str = options.datastore_path
    if path:
        container.environment.override({**environment, "CALICO_DATASTORE_TYPE": "sqlite"})
    elif command.uses_datastore:
        chosen = client_config(environment, options.config)
        container.environment.override(chosen.environment)
        container.inline.override(chosen.inline)
    else:
        container.environment.override(environment)
    if options.context:
        named = {"K8S_CURRENT_CONTEXT": options.context, "CALICO_K8S_CURRENT_CONTEXT": options.context}
        container.environment.override({**container.environment(), **named})
    kubeconfig = setting(container.environment(), "KUBECONFIG")
    container.netconf.override(NetConf(sqlite_path=path, kubernetes=KubernetesSettings(kubeconfig=kubeconfig)))
    container.create.override(command.makes_datastore(options))
