"""``make archive``: the release in one file, the same bytes whenever it is written from the same files.

Sources as they are committed (stored results, each with the code and the packages that made it, among them), the pages
that are built, the PDF if it is there, a kit for teachers, and a checksum for every file. Unpacked anywhere,
``html/index.html`` reads without a network, and ``sha256sum -c SHA256SUMS`` holds.

In the kit ``figures/05.1.svg`` is figure 5.1; ``figures/captions.md`` lists numbers, captions and alternative texts.
Each chapter with exercises gives two notebooks, one with solutions. Numbers and the words of references come from the
built pages.
"""

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup, Tag
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rcbook import citation
from rcbook.words import in_words

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "_build"
BLOCK = re.compile(  # an exercise or solution, in one fence or between two
    r"^(?P<fence>:{3,}|`{3,})\{(?P<kind>exercise|solution)(?P<gate>-start)?\} *(?P<title>.*)\n(?P<options>(?::.*\n)*)"
    r"(?(gate)(?P=fence)\n)(?P<body>(?s:.*?))^(?P=fence)(?(gate)\{(?P=kind)-end\}|$)",
    re.MULTILINE,
)
ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?) *<([^`>]+)>|([^`]+))`")


def said(tag: Tag) -> str:
    return " ".join(tag.get_text().split())


def words(page: BeautifulSoup) -> dict[str, str]:
    """Label -> the words of a page's references to it, or the number of the exercise."""
    links = page.select('a.reference.internal[href*="#"]')
    found = {link["href"].partition("#")[2].removeprefix("equation-"): said(link) for link in links}
    exercises = page.select(".exercise[id]:has(.caption-number)")
    return found | {box["id"]: said(box.select_one(".caption-number")) for box in exercises}


def resolved(text: str, known: dict[str, str]) -> str:
    """Markdown whose references are words."""

    def in_place(role: re.Match[str]) -> str:
        name = known.get(label := role[2] or role[3], in_words(label))
        return (role[1] or name).replace("%s", name.split(" ")[-1])

    return ROLE.sub(in_place, text)


def exercises(notebook: nbformat.NotebookNode, known: dict[str, str]) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Cells, each with its kind: exercise or solution."""
    cells = notebook.cells
    text = "\n\n".join(c.source if c.cell_type == "markdown" else f"\0{i}\0" for i, c in enumerate(cells))
    for block in BLOCK.finditer(text):
        label = "".join(re.findall(r":label: (\S+)", block["options"]))
        number, title = (known.get(name, name) for name in (label, block["title"]))
        head = f"## Solution of {title}" if block["kind"] == "solution" else f"## {number}: {title}"
        for place, part in enumerate(f"{head}\n\n{block['body'].strip()}".split("\0")):
            if place % 2:
                cell = cells[int(part)]
                yield block["kind"], new_code_cell(cell.source, outputs=cell.outputs, execution_count=1)
            elif part.strip():
                yield block["kind"], new_markdown_cell(resolved(part.strip(), known))


def kit(html: Path, notebooks: list[Path]) -> dict[str, bytes]:
    """The kit for teachers: name in the archive -> content."""
    pages = {path: BeautifulSoup(path.read_bytes(), "html.parser") for path in sorted(html.rglob("*.html"))}
    known = {label: name for page in pages.values() for label, name in words(page).items()}
    found, captions = {}, {}
    for path, page in pages.items():
        for figure in page.select("figure:has(img):has(.caption-number)"):
            chapter, _, place = said(figure.select_one(".caption-number")).removeprefix("Fig. ").rpartition(".")
            number, file = f"{chapter:0>2}.{place}" if chapter else place, path.parent / figure.img["src"]
            found[f"figures/{number}{file.suffix}"] = file.read_bytes()
            text = f"{said(figure.select_one('.caption-text'))} *Alternative text:* {figure.img['alt']}"
            captions[chapter.zfill(2), place.zfill(2)] = f"- **{number}** {text}\n"
    found["figures/captions.md"] = "".join(["# Figures of the book\n\n", *map(captions.get, sorted(captions))]).encode()
    for path in notebooks:
        cells = list(exercises(nbformat.read(path, as_version=4), known))
        setup = new_markdown_cell("Labs use names of the chapter, which the next cell runs.")
        run = new_code_cell(f"%run ../../{path.parent.name}/{path.name}")
        for folder, kinds in (("exercises", ("exercise",)), ("exercises_with_solutions", ("exercise", "solution"))):
            kept = [setup, run, *(cell for kind, cell in cells if kind in kinds)]
            copies = [nbformat.from_dict({**cell, "id": f"cell-{place}"}) for place, cell in enumerate(kept)]
            if cells:
                found[f"{folder}/{path.name}"] = nbformat.writes(new_notebook(cells=copies)).encode() + b"\n"
    return {f"teaching/{name}": content for name, content in found.items()}


def contents(files: list[str], built: Path = BUILT) -> dict[str, bytes | Path]:
    """Name in the archive -> file or content: the files of the repository, the pages, the PDF, and the kit."""
    if not (built / "html" / "index.html").is_file():
        raise SystemExit("error: no pages are built; run `make book` first")
    pages = {path.relative_to(built).as_posix(): path for path in built.glob("html/**/*.*") if path.is_file()}
    pdf = {path.name: path for path in built.glob("pdf/*.*")}
    notebooks = sorted(path for pattern in ("chapters/*.ipynb", "book/*.ipynb") for path in ROOT.glob(pattern))
    return {name: ROOT / name for name in files} | pages | pdf | kit(built / "html", notebooks)


def write(members: dict[str, bytes | Path], target: Path, folder: str, date: datetime) -> None:
    """Write a tar archive with nothing in it of the machine, the user or the hour; the checksums last."""
    sums = ""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in [*sorted(members), "SHA256SUMS"]:
            member = members.get(name, sums.encode())
            content = member.read_bytes() if isinstance(member, Path) else member
            sums += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), int(date.timestamp())
            entry.mode = 0o755 if isinstance(member, Path) and member.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    """Write ``dist/rcpkg-book-VERSION.tar.gz`` and say its size and checksum."""
    changed, listed = (
        subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True, check=True).stdout
        for command in (("status", "--porcelain"), ("ls-files", "-z"))
    )
    if changed:
        raise SystemExit("error: there are changes that are not committed; an archive is of a commit")
    entry = citation.citation()
    target = ROOT / "dist" / f"rcpkg-book-{entry['version']}.tar.gz"
    target.parent.mkdir(exist_ok=True)
    members, date = contents(listed.split("\0")[:-1]), datetime.fromisoformat(str(entry["date-released"]))
    write(members, target, target.name.removesuffix(".tar.gz"), date.replace(tzinfo=UTC))
    size, checksum = target.stat().st_size / 2**20, hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.relative_to(ROOT)}: {len(members)} files, {size:.1f} MiB, sha256 {checksum}")
    print("The PDF is in it." if "book.pdf" in members else "It has no PDF: make pdf has not been run.")


if __name__ == "__main__":
    main()
