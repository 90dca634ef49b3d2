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
    folders = {"html/": html, "teaching/": kit, "": pdf}
    built = {f"{name}{file.relative_to(f).as_posix()}": file for name, f in folders.items() for file in f.rglob("*.*")}
    return {name: ROOT / name for name in files} | {name: path for name, path in built.items() if path.is_file()}


def write(members: dict[str, Path], target: Path, folder: str, date: datetime) -> None:
    """Write a tar archive with nothing in it of the machine, the user or the hour; the checksums last."""
    sums = ""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in [*sorted(members.items()), ("SHA256SUMS", None)]:
            content = path.read_bytes() if path else sums.encode()
            sums += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), int(date.timestamp())
            entry.mode = 0o755 if path and path.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write ``dist/rcpkg-book-VERSION.tar.gz`` and say its size and checksum."""
    if git("status", "--porcelain"):
        raise SystemExit("error: there are changes that are not committed; an archive is of a commit")
    entry = citation.citation()
    folder = f"rcpkg-book-{entry['version']}"
    target = ROOT / "dist" / f"{folder}.tar.gz"
    target.parent.mkdir(exist_ok=True)
    shutil.rmtree(KIT, ignore_errors=True)
    teaching.write(HTML, sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("book/*.ipynb")]), KIT)
    members = contents(git("ls-files", "-z").split("\0")[:-1])
    write(members, target, folder, datetime.fromisoformat(str(entry["date-released"])).replace(tzinfo=UTC))
    size, checksum = target.stat().st_size / 2**20, hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.relative_to(ROOT)}: {len(members)} files, {size:.1f} MiB, sha256 {checksum}")
    print("The PDF is in it." if PDF.is_dir() else "It has no PDF: make pdf has not been run.")


if __name__ == "__main__":
    main()
