"""How to cite, as BibTeX and as a line of text, from CITATION.cff (which Zenodo and GitHub read by themselves)."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


def citation() -> dict[str, Any]:
    """The contents of CITATION.cff."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def authors(entry: dict[str, Any]) -> list[str]:
    """Names as BibTeX writes them: family name first; of a group as it is."""
    names = []
    for author in entry["authors"]:
        given = author.get("given-names")
        names.append(author["name"] if given is None else f"{author['family-names']}, {given}")
    return names


def works(entry: dict[str, Any], number: int, chapter: str) -> dict[str, tuple[str, str]]:
    """The book, one of its chapters (number and title) and the library: each as a line of text and in BibTeX."""
    book, (short, _, _) = entry["title"], entry["title"].partition(": ")
    library = f"rcpkg, the library of: {short}"
    return {
        "The book": (plain(entry, book), bibtex(entry, "book", "rcbook", book)),
        "A chapter": (
            plain(entry, f"{chapter}. Chapter {number} of: {short}"),
            bibtex(entry, "incollection", f"rcbook-{number}", chapter, booktitle=f"{{{book}}}", chapter=str(number)),
        ),
        "The library": (plain(entry, library), bibtex(entry, "software", "rcpkg", library)),
    }


def bibtex(entry: dict[str, Any], kind: str, key: str, title: str, **more: str) -> str:
    """An entry of BibTeX, with further fields."""
    date = str(entry["date-released"])
    fields = {
        "author": " and ".join(f"{{{name}}}" if ", " not in name else name for name in authors(entry)),
        "title": f"{{{title}}}",
        "year": date[:4],
        "version": entry["version"],
        "date": date,
    } | more
    if "repository-code" in entry:
        fields["url"] = entry["repository-code"]
    width = max(map(len, fields))
    lines = [f"  {name:{width}} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def plain(entry: dict[str, Any], title: str) -> str:
    """A line of text."""
    year = str(entry["date-released"])[:4]
    return f"{'; '.join(authors(entry))} ({year}). {title}. Version {entry['version']}."
