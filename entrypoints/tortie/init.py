"""`tortie init`: make what a first container needs, and say for each record whether it is new.

Invariant: what exists stays as it is.
"""

from __future__ import annotations

import os

from domain.ipam.pool_rules import block_sizes_by_version, check_block_sizes_used
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from usecases.initialise_cluster import Wish, initialise_cluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pool",
        metavar="CIDR",
        action="append",
        default=[],
        help="a range to assign addresses from; repeatable; for a further node of a cluster that has pools not needed",
    )
    parser.add_argument(
        "--block-size",
        metavar="N",
        type=int,
        action="append",
        help="prefix length of blocks: 20-32 for IPv4 pools (default 26), 116-128 for IPv6 pools (default 122)",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="name of this node (default: $NODENAME, else the host name in lower case)",
    )


def _run(options: Namespace, session: Session) -> Answer:
    block_sizes = block_sizes_by_version(options.block_size or ())
    check_block_sizes_used(block_sizes, options.pool)
    wish = Wish(
        node=_node(options, session),
        guid=os.urandom(16).hex(),
        pools=tuple(options.pool),
        block_sizes=block_sizes,
    )
    outcomes = initialise_cluster(session.datastore, wish, session.deadline)
    records = [f"{outcome.kind} {outcome.name}" for outcome in outcomes]
    width = max(len(record) for record in records)
    lines = [
        f"{'made' if outcome.made else 'exists':<7} {record:<{width}}  {outcome.note}".rstrip()
        for record, outcome in zip(records, outcomes)
    ]
    return Answer(people(lines))


def _node(options: Namespace, session: Session) -> str:
    name: str = session.environment.get("NODENAME", "") if options.node is None else options.node
    return name or session.host_name()


COMMAND = Command(
    "init",
    "Make a datastore ready: cluster information, this node, and IP pools.",
    _run,
    _add_arguments,
    makes_datastore=lambda options: bool(options.pool),
    examples="""\
tortie init --pool 10.244.0.0/16 --pool fd00:10:244::/48
tortie init --node node-b                         a further node of a cluster that has pools""",
)
