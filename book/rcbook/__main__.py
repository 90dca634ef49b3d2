"""Command line: ``python -m rcbook fetch | run | status | sign | table``."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import groupby

from rcbook import datasets, experiments
from rcbook.experiments import signing
from rcbook.experiments.runner import kept
from rcpkg import __version__

SHOWN = 5  # changed definitions that are named
FOLDERS = (
    "Data sets are looked for in the folder that the environment variable RCPKG_DATA names, then in the user's cache. "
    "Results are read and written in the folder that RCPKG_RESULTS names; without it in data/results of the checkout. "
    "What is kept there is not computed again; an empty folder begins anew."
)


def _fetch(arguments: argparse.Namespace) -> int:
    names = datasets.fetch(arguments.name, progressbar=True)
    print(f"{len(names)} data sets are here and checked: {', '.join(names)}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    failed = 0
    for name in arguments.table or experiments.tables():
        source, _, table = name.partition(":")
        errors = experiments.run(source, table, quick=arguments.quick, jobs=arguments.jobs, backend=arguments.backend)
        for key, error in errors.items():
            print(f"{name} {key}: {error}", file=sys.stderr)
        print(kept(source, table, quick=arguments.quick))
        failed += len(errors)
    return int(failed > 0)


def _status(arguments: argparse.Namespace) -> int:
    found = experiments.status()
    print(found.to_string(index=False))
    for name in found.table[found.stale > 0]:
        (study,) = signing.named([name])
        stale = signing.stale(study)
        for changed, keys in groupby(sorted(stale, key=stale.__getitem__), stale.__getitem__):
            few, n = ", ".join(changed[:SHOWN]), len(changed) - SHOWN
            more = f" and {n} more definitions" if n > 0 else ""
            print(f"stale: {len(list(keys))} cells of {name}, by {few}{more}")
    return 0


def _sign(arguments: argparse.Namespace) -> int:
    refused = 0
    for study in signing.named(arguments.table):
        if before := len(signing.stale(study)):
            lines = signing.sign(study)
            left = len(signing.stale(study))
            print(f"{study.source}:{study.name}: {before - left} of {before} stale cells are signed", flush=True)
            print("".join(f"  {line}\n" for line in lines), end="", file=sys.stderr, flush=True)
            refused += left
    return int(refused > 0)


def _table(arguments: argparse.Namespace) -> int:
    source, _, table = arguments.table.partition(":")
    print(experiments.results(source, table).to_csv(index=False, lineterminator="\n"), end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rcbook", description=__doc__, epilog=FOLDERS)
    parser.add_argument("--version", action="version", version=f"rcpkg {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    fetch = commands.add_parser("fetch", help="make data sets available offline")
    fetch.add_argument("name", nargs="*", help="name of a data set (default: all)")
    fetch.set_defaults(action=_fetch)
    run = commands.add_parser("run", help="recompute published tables, as far as that is not done", epilog=FOLDERS)
    run.add_argument("table", nargs="*", metavar="SOURCE:TABLE", help="such as rc2025:3 (default: all)")
    run.add_argument("--quick", action="store_true", help="small data sets, few repetitions, stored apart")
    run.add_argument("--jobs", type=int, default=1, metavar="N", help="parallel workers (default 1)")
    run.add_argument("--backend", metavar="NAME", help="a joblib backend: loky, threading, dask, …")
    run.set_defaults(action=_run)
    status = commands.add_parser("status", help="show what has been recomputed, and what is stale")
    status.set_defaults(action=_status)
    sign = commands.add_parser("sign", help="compute a few stale cells again, and sign all that come out")
    sign.add_argument("table", nargs="*", metavar="SOURCE:TABLE", help="such as study:honest (default: all)")
    sign.set_defaults(action=_sign)
    table = commands.add_parser("table", help="print what is stored of a table, as CSV")
    table.add_argument("table", metavar="SOURCE:TABLE", help="such as rc2025:3")
    table.set_defaults(action=_table)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status.

    0; 1 where something is not available; 2 for a wrong argument; 130 after Ctrl-C. What went wrong is one line.
    """
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *place: print(f"warning: {message}", file=sys.stderr)
        try:
            return arguments.action(arguments)
        except KeyboardInterrupt as stop:
            print(f"{stop or 'stopped'}", file=sys.stderr)
            return 130
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        except (OSError, ImportError) as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
