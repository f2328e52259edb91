"""`tortie ipam upgrade`: from host-local to calico-ipam by hand, or just what that would do.

`calico-ipam -upgrade` is the same for an init container, and tries until it is done; here a failure is told, and the
datastore made as ready as it was.

Invariant: with --dry-run nothing is changed.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command, Stopped
from entrypoints.tortie.output import Row, Sheet, add_output, shown
from entrypoints.upgrade import (
    DIRECTORY,
    INTERRUPTED,
    PACE,
    WAIT,
    guarded,
    old_programs,
    open_reservations,
    seconds,
    told,
)
from ports.errors import BadConfiguration
from ports.runtime import UpgradeRuntime
from usecases.upgrade_ipam import Wish, foresee_upgrade, upgrade_ipam

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from domain.json_text import Json
    from entrypoints.tortie.session import Session
    from usecases.upgrade.reservations import Outcome

PROGRAMS = "/opt/cni/bin"
_SHOWN = 20  # of each kind


def _add_arguments(parser: ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would become of each reservation")
    parser.add_argument(
        "--node", metavar="NAME", default="", help="name of this node (default: $KUBERNETES_NODE_NAME, else $NODENAME)"
    )
    parser.add_argument(
        "--directory", metavar="DIR", default=DIRECTORY, help="host-local's reservations (default: %(default)s)"
    )
    parser.add_argument(
        "--cni-bin-dir",
        metavar="DIR",
        default=PROGRAMS,
        help="where `host-local` is removed, and a `calico` that is not this program (default: %(default)s)",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=WAIT,
        help="for programs that still run (default: %(default)g)",
    )


def _seconds(text: str) -> float:
    try:
        return seconds(text, "--wait")
    except BadConfiguration as error:
        raise ArgumentTypeError(str(error)) from None


def _run(options: Namespace, session: Session) -> Answer:
    """Exit code 1 if something is, or would be, left."""
    environment = session.environment
    node = options.node or environment.get("KUBERNETES_NODE_NAME") or environment.get("NODENAME", "")
    if not node:
        raise Stopped("the name of this node is not known; give --node, or set KUBERNETES_NODE_NAME")
    session.unless_set(PACE)
    runtime = UpgradeRuntime(
        datastore=lambda: session.datastore,
        cluster=lambda: session.datastore_cluster,
        reservations=lambda: open_reservations(options.directory, session.clock),
        node=lambda: session.this_node,
        clock=session.clock,
        log=session.log,
    )
    runtime.doing = session.doing
    wish = Wish(node, old_programs(options.cni_bin_dir), options.wait)
    try:
        if options.dry_run:
            outcome: Outcome | None = foresee_upgrade(runtime, wish)
        else:
            outcome = guarded(lambda undo: upgrade_ipam(runtime, wish, undo), runtime.clock, runtime.log)
    except BadConfiguration as error:
        raise Stopped(told(error)) from error
    if outcome is None:
        raise Stopped(INTERRUPTED)
    return Answer(shown(options.output, _sheet(outcome, options)), 1 if outcome.left else 0)


def _text(outcome: Outcome, options: Namespace) -> str:
    done = ("Would move", "Would remove", "Would leave") if options.dry_run else ("Moved", "Removed", "Left")
    if not (outcome.moved or outcome.before or outcome.stale or outcome.left):
        return people([f"No reservation of host-local in {options.directory}."])
    lines = [
        f"{done[0]} {len(outcome.moved)} to calico-ipam, and {len(outcome.before)} that were recorded already.",
        f"{done[1]} {len(outcome.stale)} that no pod has.",
    ]
    if outcome.left:
        lines.append(f"{done[2]} {len(outcome.left)}:")
        lines += [f"  {one.name}: {one.why}" for one in outcome.left[:_SHOWN]]
    if len(outcome.left) > _SHOWN:
        lines.append(f"  and {len(outcome.left) - _SHOWN} more; -o wide shows all")
    return people(lines)


def _sheet(outcome: Outcome, options: Namespace) -> Sheet:
    left: list[Json] = [{"name": one.name, "why": one.why} for one in outcome.left]
    document: dict[str, Json] = {
        "dryRun": options.dry_run,
        "moved": list(outcome.moved),
        "recordedBefore": list(outcome.before),
        "stale": list(outcome.stale),
        "left": left,
    }
    fates = {"moved": outcome.moved, "recordedBefore": outcome.before, "stale": outcome.stale}
    rows = [_row(name, fate, "") for fate, names in fates.items() for name in names]
    rows += [_row(one.name, "left", one.why) for one in outcome.left]
    return Sheet(document, ("NAME", "FATE", "WHY"), tuple(rows), lambda: _text(outcome, options))


def _row(name: str, fate: str, why: str) -> Row:
    about: dict[str, Json] = {"name": name, "fate": fate, "why": why}
    return Row(f"reservation/{name}", {"NAME": name, "FATE": fate, "WHY": why}, about)


COMMAND = Command(
    "upgrade",
    "Make host-local's reservations on this node calico-ipam's.",
    _run,
    _add_arguments,
    examples="""\
tortie ipam upgrade --node n1 --dry-run           what would become of each reservation
tortie ipam upgrade --node n1""",
)
