"""The record of a rebuild from scratch: durations of the parts of ``.ci/run``, and nothing that names the machine."""

import json
import platform
import re
from pathlib import Path

import pytest
import rebuild
from conftest import ROOT

LOG = """\
part: make environment: 62 s
======= 5521 passed, 2 skipped in 271.78s (0:04:31) =======
===== 818 passed in 136.47s (0:02:16) =====
part: make test: 415 s
part: make book: 300 s
part: make test-slow SLOW=--ignore=tests/book: 310 s
part: make test-slow SLOW=tests/book: 590 s
"""


def test_parts_are_those_that_continuous_integration_times():
    script = (ROOT / ".ci" / "run").read_text()
    runs = re.findall(r"^(?:RCPKG_BOOK=\S+ )?part (make [^>\n]+?)(?: >.*)?$", script, re.MULTILINE)
    assert tuple(runs) == rebuild.PARTS


def test_durations_and_counts_come_from_the_log():
    found = rebuild.record(LOG, {rebuild.EXECUTED: 99})
    assert found["seconds"] == dict(zip((*rebuild.PARTS, rebuild.EXECUTED), (62, 415, 300, 310, 590, 99), strict=True))
    assert found["tests"] == ["5521 passed, 2 skipped", "818 passed"]
    assert {"date", "commit", "python", "packages", "hardware"} <= found.keys()
    assert {"processor", "cores", "memory_gib"} <= found["hardware"].keys()


def test_a_run_that_stopped_is_no_rebuild():
    with pytest.raises(SystemExit, match="SLOW=tests/book"):
        rebuild.durations(LOG.replace("part: make test-slow SLOW=tests/book: 590 s\n", ""))


def test_a_run_in_an_environment_that_was_there_is_no_rebuild():
    with pytest.raises(SystemExit, match="fresh clone"):
        rebuild.durations(LOG.replace("62 s", "0 s"))


def test_the_record_names_neither_the_machine_nor_a_folder_of_it():
    text = json.dumps(rebuild.record(LOG, {}))
    assert platform.node() not in text and str(ROOT) not in text and str(Path.home()) not in text


@pytest.mark.skipif(not rebuild.RECORD.is_file(), reason="no rebuild from scratch is recorded")
def test_the_stored_record_is_complete():
    stored = json.loads(rebuild.RECORD.read_text(encoding="utf-8"))
    assert stored.keys() == rebuild.record(LOG, {}).keys()
    assert stored["seconds"].keys() == {*rebuild.PARTS, rebuild.EXECUTED} and not stored["modified"]
    assert not any("failed" in count or "error" in count for count in stored["tests"])
