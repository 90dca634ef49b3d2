"""``make archive``: the release in one file, the same bytes whenever it is written from the same files.

Sources as they are committed, the pages that are built, the PDF if it is there, a checksum for every file, and a
Research Object Crate of the stored results: for each file of cells the code, the packages and the registry of data sets
that made it. Unpacked anywhere, ``html/index.html`` reads without a network, and ``sha256sum -c SHA256SUMS`` holds.
"""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rcbook import citation
from rcbook.experiments.store import read

ROOT = Path(__file__).resolve().parents[2]
HTML, PDF = ROOT / "_build" / "html", ROOT / "_build" / "pdf"
REGISTRY = "data/datasets.csv"
TYPES = {".csv": "text/csv", ".jsonl": "application/jsonl", ".json": "application/json"}
Entity = dict[str, Any]


def instruments(provenance: dict[str, Any]) -> list[Entity]:
    """What computed a cell: the code at one commit, Python and packages."""
    commit, modified = provenance["commit"], provenance.get("modified")
    code = {
        "@id": f"#commit-{commit}" + "-modified" * bool(modified),
        "@type": "SoftwareSourceCode",
        "name": "rcpkg and rcbook" + ", with changes that were not committed" * bool(modified),
        "version": f"commit {commit}",
        "programmingLanguage": "Python",
    }
    # what is carried over from before studies kept it does not say which Python
    versions = {name: provenance[name] for name in ("python",) if name in provenance} | provenance["packages"]
    software = [
        {"@id": f"#{name}-{version}", "@type": "SoftwareApplication", "name": name, "version": version}
        for name, version in versions.items()
    ]
    return [code, *software]


def crate(files: list[str]) -> Entity:
    """RO-Crate 1.1 of the stored results among the files of the repository, given by their paths from its root."""
    entry = citation.citation()
    stored = [REGISTRY, *sorted(name for name in files if name.startswith("data/results/"))]
    entities: dict[str, Entity] = {}
    for name in stored:
        path = ROOT / name
        content = path.read_bytes()
        entities[name] = {
            "@type": "File",
            "name": path.name,
            "encodingFormat": TYPES.get(path.suffix, "text/plain"),
            "contentSize": str(len(content)),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        if path.suffix == ".jsonl":
            made_by = {json.dumps(done.provenance): done.provenance for done in read(path)}
            used = {tool["@id"]: tool for provenance in made_by.values() for tool in instruments(provenance)}
            entities |= used
            entities[f"#run-{path.stem}"] = {
                "@type": "CreateAction",
                "name": f"Computation of {path.stem.replace('_table_', ', ')}",
                "instrument": [{"@id": key} for key in sorted(used)],
                "object": [{"@id": REGISTRY}],
                "result": [{"@id": name}],
            }
    licences = {f"https://spdx.org/licenses/{name}": name for name in entry["license"]}
    authors = {f"#author-{number}": name for number, name in enumerate(citation.authors(entry), start=1)}
    entities |= {key: {"@type": "CreativeWork", "name": name} for key, name in licences.items()}
    entities |= {key: {"@type": "Organization", "name": name} for key, name in authors.items()}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Stored results of: {entry['title']}",
        "description": entry["abstract"],
        "version": entry["version"],
        "datePublished": str(entry["date-released"]),
        "license": [{"@id": key} for key in licences],
        "author": [{"@id": key} for key in authors],
        "hasPart": [{"@id": name} for name in stored],
        "mentions": [{"@id": name} for name in entities if name.startswith("#run-")],
    }
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    graph = [about, root, *({"@id": name} | entity for name, entity in entities.items())]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}


def contents(files: list[str], html: Path = HTML, pdf: Path = PDF) -> dict[str, bytes | Path]:
    """Name in the archive -> file, or its bytes where it is written here."""
    if not (html / "index.html").is_file():
        raise SystemExit("error: no pages are built; run `make book` first")
    members: dict[str, bytes | Path] = {name: ROOT / name for name in files}
    members |= {f"html/{path.relative_to(html).as_posix()}": path for path in html.rglob("*") if path.is_file()}
    members |= {path.name: path for path in pdf.glob("*.*")}
    members["ro-crate-metadata.json"] = json.dumps(crate(files), indent=1, ensure_ascii=False).encode()
    checksums = (f"{hashlib.sha256(content_of(members[name])).hexdigest()}  {name}\n" for name in sorted(members))
    members["SHA256SUMS"] = "".join(checksums).encode()
    return members


def content_of(member: bytes | Path) -> bytes:
    return member if isinstance(member, bytes) else member.read_bytes()


def write(members: dict[str, bytes | Path], target: Path, folder: str, date: datetime) -> None:
    """Write a tar archive with nothing in it of the machine, the user or the hour."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(members):
            content = content_of(members[name])
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), int(date.timestamp())
            executable = isinstance(members[name], Path) and members[name].stat().st_mode & 0o100
            entry.mode = 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(content))


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
    members = contents(sorted(filter(None, listed.split("\0"))))
    write(members, target, folder, datetime.fromisoformat(str(entry["date-released"])).replace(tzinfo=UTC))
    size, checksum = target.stat().st_size / 2**20, hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.relative_to(ROOT)}: {len(members)} files, {size:.1f} MiB, sha256 {checksum}")
    if not PDF.is_dir():
        print("It has no PDF: make pdf has not been run.")


if __name__ == "__main__":
    main()
