"""``make archive``: the release in one file, the same bytes whenever it is written from the same files.

Sources as they are committed (stored results, each with the code and the packages that made it, among them), the pages
that are built, the PDF if it is there, a kit for teachers (``teaching.py``), and a checksum for every file. Unpacked
anywhere, ``html/index.html`` reads without a network, and ``sha256sum -c SHA256SUMS`` holds.
"""

import gzip
import hashlib
import io
import shutil
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import teaching
from rcbook import citation

ROOT = Path(__file__).resolve().parents[2]
HTML, PDF, KIT = (ROOT / "_build" / name for name in ("html", "pdf", "teaching"))


def contents(files: list[str], html: Path = HTML, pdf: Path = PDF, kit: Path = KIT) -> dict[str, Path]:
    """Name in the archive -> file: those of the repository, the pages, the kit for teachers, the PDF."""
    if not (html / "index.html").is_file():
        raise SystemExit("error: no pages are built; run `make book` first")
    members = {name: ROOT / name for name in files}
    for name, folder in (("html", html), ("teaching", kit)):
        members |= {
            f"{name}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()
        }
    return members | {path.name: path for path in pdf.glob("*.*")}


def write(members: dict[str, Path], target: Path, folder: str, date: datetime) -> None:
    """Write a tar archive with nothing in it of the machine, the user or the hour; the checksums last."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(name: str, content: bytes, mode: int) -> None:
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(date.timestamp()), mode
            archive.addfile(entry, io.BytesIO(content))

        sums = ""
        for name, path in sorted(members.items()):
            content = path.read_bytes()
            sums += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            add(name, content, 0o755 if path.stat().st_mode & 0o100 else 0o644)
        add("SHA256SUMS", sums.encode(), 0o644)


def main() -> None:
    """Write ``dist/rcpkg-book-VERSION.tar.gz`` and say its size and checksum."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout:
        raise SystemExit("error: there are changes that are not committed; an archive is of a commit")
    listed = subprocess.run([*git, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    entry = citation.citation()
    folder = f"rcpkg-book-{entry['version']}"
    target = ROOT / "dist" / f"{folder}.tar.gz"
    target.parent.mkdir(exist_ok=True)
    shutil.rmtree(KIT, ignore_errors=True)
    if HTML.is_dir():
        teaching.write(HTML, sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")]), KIT)
    members = contents([name for name in listed.split("\0") if name])
    write(members, target, folder, datetime.fromisoformat(str(entry["date-released"])).replace(tzinfo=UTC))
    size, checksum = target.stat().st_size / 2**20, hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.relative_to(ROOT)}: {len(members)} files, {size:.1f} MiB, sha256 {checksum}")
    if not PDF.is_dir():
        print("It has no PDF: make pdf has not been run.")


if __name__ == "__main__":
    main()
