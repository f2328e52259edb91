"""`tortie ipam split`: several pools in one pool's place.

Invariant: with --dry-run nothing is changed.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.ipam.address import Cidr
from domain.ipam.pool_split import children
from entrypoints.tortie.answer import Answer, people
from entrypoints.tortie.command import Command
from ports.datastore import Blocks
from usecases.split_pool import named_pool, require_locked, split_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from entrypoints.tortie.session import Session


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("number", metavar="NUMBER", type=int, help="how many pools, a power of two")
    parser.add_argument("--cidr", metavar="CIDR", type=_cidr, help="the pool's range")
    parser.add_argument("--name", metavar="POOL", default="", help="the pool's name")
    parser.add_argument("--force", action="store_true", help="even if the datastore is not locked")
    parser.add_argument("--dry-run", action="store_true", help="only say which pools there would be")


def _cidr(text: str) -> Cidr:
    try:
        return Cidr.parse_lenient(text).network
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _objection(options: Namespace) -> str:
    return "" if options.cidr or options.name else "say which pool: --name POOL or --cidr CIDR"


def _run(options: Namespace, session: Session) -> Answer:
    store, deadline = session.datastore, session.deadline
    session.doing("reading pools and blocks")
    pool = named_pool(store, options.name, options.cidr, deadline)
    if options.dry_run:
        blocks = [stored.record.cidr for stored in store.list(Blocks(), deadline)]
        made = children(pool.record, options.number, blocks)
    else:
        if not options.force:
            require_locked(store, deadline)
        made = split_pool(store, pool, options.number, deadline)
    said = "Would split" if options.dry_run else "Successfully split"
    lines = [f"{said} IPPool {pool.record.metadata.name} {pool.record.cidr} into:"]
    return Answer(people([*lines, *[f"  {child.metadata.name}  {child.cidr}" for child in made]]))


COMMAND = Command(
    "split",
    "Put several pools in one pool's place.",
    _run,
    _add_arguments,
    _objection,
    examples="""\
tortie ipam split 2 --cidr 172.0.0.0/8 --dry-run
tortie datastore migrate lock
tortie ipam split 4 --name default-ipv4-ippool
tortie datastore migrate unlock""",
)
