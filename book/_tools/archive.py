"""``make archive``: the release in one file, the same bytes whenever it is written from the same files.

Sources as they are committed, the pages that are built, the PDF if it is there, with a Research Object Crate of
the stored results and a checksum for every file. Unpacked anywhere, ``html/index.html`` reads without a network, and
``sha256sum -c SHA256SUMS`` holds.
"""

import argparse
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import crate
import rebuild
from rcbook import citation

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
OTHERS = (ROOT / "_build" / "pdf",)  # what make pdf leaves


def sources() -> list[str]:
    """The committed files by their paths from the root; what differs from the commit is refused."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout:
        raise SystemExit("error: there are changes that are not committed; an archive is of a commit")
    listed = subprocess.run([*git, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.split("\0") if name)


def contents(files: list[str], html: Path = HTML, others: Iterable[Path] = OTHERS) -> dict[str, bytes | Path]:
    """Name in the archive -> file, or its bytes where it is written here."""
    if not (html / "index.html").is_file():
        raise SystemExit("error: no pages are built; run `make book` first")
    members: dict[str, bytes | Path] = {name: ROOT / name for name in files}
    members |= {f"html/{path.relative_to(html).as_posix()}": path for path in html.rglob("*") if path.is_file()}
    members |= {path.name: path for folder in others for path in folder.glob("*.*")}
    members["ro-crate-metadata.json"] = json.dumps(crate.crate(files), indent=1, ensure_ascii=False).encode()
    checksums = (f"{hashlib.sha256(read(members[name])).hexdigest()}  {name}\n" for name in sorted(members))
    members["SHA256SUMS"] = "".join(checksums).encode()
    return members


def read(member: bytes | Path) -> bytes:
    """The bytes of a member."""
    return member if isinstance(member, bytes) else member.read_bytes()


def write(members: dict[str, bytes | Path], target: Path, folder: str, date: datetime) -> None:
    """Write a tar archive with nothing in it of the machine, the user or the hour."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(members):
            content = read(members[name])
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), int(date.timestamp())
            executable = isinstance(members[name], Path) and members[name].stat().st_mode & 0o100
            entry.mode = 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    """Write ``dist/rcpkg-book-VERSION.tar.gz`` and say its size and checksum."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    entry = citation.citation()
    folder = f"rcpkg-book-{entry['version']}"
    target = ROOT / "dist" / f"{folder}.tar.gz"
    target.parent.mkdir(exist_ok=True)
    members = contents(sources())
    write(members, target, folder, datetime.fromisoformat(str(entry["date-released"])).replace(tzinfo=UTC))
    size = target.stat().st_size / 2**20
    checksum = hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.relative_to(ROOT)}: {len(members)} files, {size:.1f} MiB, sha256 {checksum}")
    for folder in OTHERS:
        if not folder.is_dir():
            print(f"It has no {folder.name.upper()}: make {folder.name} has not been run.")
    if not rebuild.RECORD.is_file():
        print("It has no record of a rebuild from scratch: book/_tools/rebuild.py writes one.")


if __name__ == "__main__":
    main()
