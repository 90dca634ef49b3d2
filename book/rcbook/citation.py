"""How to cite, in the words of others: `.zenodo.json`, `codemeta.json`, BibTeX and a line of text, from CITATION.cff.

``python -m rcbook.citation`` writes the two files; a test compares them.
"""

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = (".zenodo.json", "codemeta.json")


def citation() -> dict[str, Any]:
    """The contents of CITATION.cff."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def authors(entry: dict[str, Any]) -> list[str]:
    """Names as BibTeX and Zenodo write them: family name first; of a group as it is."""
    names = []
    for author in entry["authors"]:
        given = author.get("given-names")
        names.append(author["name"] if given is None else f"{author['family-names']}, {given}")
    return names


def zenodo(entry: dict[str, Any]) -> dict[str, Any]:
    """Zenodo's record of a release."""
    return {
        "title": entry["title"],
        "description": entry["abstract"],
        "upload_type": "software",
        "version": entry["version"],
        "publication_date": str(entry["date-released"]),
        "creators": [{"name": name} for name in authors(entry)],
        "keywords": entry["keywords"],
        "license": "BSD-3-Clause",
        "notes": "The code is under BSD-3-Clause, text and figures under CC-BY-4.0.",
    }


def codemeta(entry: dict[str, Any]) -> dict[str, Any]:
    """The record of CodeMeta 3.0."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": "rcpkg",
        "description": entry["abstract"],
        "version": entry["version"],
        "datePublished": str(entry["date-released"]),
        "author": [
            {"@type": "Organization", "name": author["name"]}
            if "name" in author
            else {"@type": "Person", "givenName": author["given-names"], "familyName": author["family-names"]}
            for author in entry["authors"]
        ],
        "keywords": entry["keywords"],
        "license": [f"https://spdx.org/licenses/{name}" for name in entry["license"]],
        "programmingLanguage": "Python",
        "runtimePlatform": "Python 3.11 to 3.14",
    } | ({"codeRepository": entry["repository-code"]} if "repository-code" in entry else {})


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


def files() -> dict[str, str]:
    """Name -> contents of what is written from CITATION.cff."""
    entry = citation()
    records = (zenodo(entry), codemeta(entry))
    texts = (json.dumps(record, indent=2, ensure_ascii=False) + "\n" for record in records)
    return dict(zip(FILES, texts, strict=True))


if __name__ == "__main__":
    for name, text in files().items():
        (ROOT / name).write_text(text, encoding="utf-8")
