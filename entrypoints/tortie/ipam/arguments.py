"""Arguments that several of the `tortie ipam` commands have.

Invariant: an argument means the same in each of them.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from domain.ipam.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser


def add_report(parser: ArgumentParser, summary: str) -> None:
    parser.add_argument("--from-report", metavar="FILE", action="append", default=[], help=summary)


def add_copies(parser: ArgumentParser) -> None:
    summary = "a new file for copies of damaged records (default: tortie-set-aside-TIME.json)"
    parser.add_argument("--copies", metavar="FILE", default="", help=summary)


def ip_address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
