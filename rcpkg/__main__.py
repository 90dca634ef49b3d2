"""Command line: ``python -m rcpkg fetch | run | status``."""

import argparse
import sys
from collections.abc import Sequence

from rcpkg import datasets


def _fetch(arguments: argparse.Namespace) -> int:
    names = datasets.fetch(arguments.name, progressbar=True)
    print(f"{len(names)} data sets are here and checked: {', '.join(names)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rcpkg", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    fetch = commands.add_parser("fetch", help="make data sets available offline")
    fetch.add_argument("name", nargs="*", help="name of a data set (default: all)")
    fetch.set_defaults(action=_fetch)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 (something is not available) or 2 (a wrong argument)."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.action(arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
