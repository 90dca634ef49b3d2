"""The record of a rebuild from scratch: how long each part took, and on what machine.

In a fresh clone::

    .ci/run | tee /tmp/run.log
    .venv/bin/python book/_tools/rebuild.py /tmp/run.log

The durations of the parts are those that ``.ci/run`` prints; the book is built beside the first slow tests. A build
that executes every chapter is measured here. The record is ``data/rebuild.json``: it goes into the archive of the
release, and names the processor, the cores and the memory, but neither the machine nor a folder of it.
"""

import argparse
import json
import os
import re
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rcbook.experiments import runner

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "data" / "rebuild.json"
PARTS = (
    "make environment",
    "make test",
    "make book",
    "make test-slow SLOW=--ignore=tests/book",
    "make test-slow SLOW=tests/book",
)
EXECUTED = "make book EXECUTE=1"


def durations(log: str) -> dict[str, int]:
    """Part -> seconds, from the lines ``part: NAME: N s`` of ``.ci/run``."""
    found = {name: int(seconds) for name, seconds in re.findall(r"^part: (.+): (\d+) s$", log, re.MULTILINE)}
    if absent := [part for part in PARTS if part not in found]:
        raise SystemExit(f"error: the log has no duration of {', '.join(absent)}; give what .ci/run printed to its end")
    if found[PARTS[0]] < 2:
        raise SystemExit("error: .venv was there already; a rebuild from scratch begins in a fresh clone")
    return {part: found[part] for part in PARTS}


def counts(log: str) -> list[str]:
    """The last line of each run of pytest, without its frame."""
    return re.findall(r"^=+ (\d+ (?:passed|failed).*?) in [\d.]+s.*=$", log, re.MULTILINE)


def measured(part: str) -> int:
    """Seconds that a target of the Makefile takes, rounded."""
    start = time.monotonic()
    subprocess.run(part.split(), cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return round(time.monotonic() - start)


def memory() -> float:
    """Memory of the machine in GiB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def record(log: str, seconds: dict[str, int]) -> dict[str, Any]:
    """What the record says, of what ``.ci/run`` printed and of further parts that are measured."""
    environment = runner.environment()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        **runner.commit(),
        **environment,
        "hardware": environment["hardware"] | {"memory_gib": memory()},
        "seconds": durations(log) | seconds,
        "tests": counts(log),
    }


def main() -> None:
    """Measure the build that executes, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", type=Path, help="what .ci/run printed")
    log = parser.parse_args().log.read_text(encoding="utf-8")
    durations(log)
    RECORD.write_text(json.dumps(record(log, {EXECUTED: measured(EXECUTED)}), indent=1) + "\n", encoding="utf-8")
    print(RECORD.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
