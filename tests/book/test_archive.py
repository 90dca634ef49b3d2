"""The archive of a release: the same bytes twice, and checksums that hold."""

import subprocess
import tarfile
from datetime import UTC, datetime

import archive
import pytest

FILES = ["README.md", "data/results/thesis2007_table_2.2.csv", "data/results/rc2025_table_1.jsonl", ".ci/run"]
DATE = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def members(tmp_path):
    html = tmp_path / "html"
    html.mkdir()
    (html / "index.html").write_text("<title>The book</title>", encoding="utf-8")
    return archive.contents(FILES, html, tmp_path / "pdf")


def test_two_archives_have_the_same_bytes(members, tmp_path):
    targets = [tmp_path / "one.tar.gz", tmp_path / "another.tar.gz"]
    for target in targets:
        archive.write(members, target, "release", DATE)
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_checksums_hold_in_an_empty_folder(members, tmp_path):
    target, folder = tmp_path / "release.tar.gz", tmp_path / "elsewhere"
    archive.write(members, target, "release", DATE)
    with tarfile.open(target) as packed:
        assert {(entry.uid, entry.uname, entry.mtime) for entry in packed} == {(0, "", DATE.timestamp())}
        packed.extractall(folder, filter="data")
    assert (folder / "release" / "html" / "index.html").is_file()
    assert (folder / "release" / ".ci" / "run").stat().st_mode & 0o100
    check = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder / "release").returncode == 0
    (folder / "release" / "README.md").write_text("something else", encoding="utf-8")
    assert subprocess.run(check, cwd=folder / "release", capture_output=True).returncode != 0


def test_pages_that_are_not_built_are_asked_for(tmp_path):
    with pytest.raises(SystemExit, match="make book"):
        archive.contents(FILES, tmp_path / "html")
