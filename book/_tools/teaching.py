"""The teacher's kit of the archive: the figures under the book's numbers, and the exercises as notebooks.

``figures/05.1.svg`` is figure 5.1; ``figures/captions.md`` lists numbers, captions and alternative texts. Each chapter
with exercises gives two notebooks, one with solutions. Numbers and the words of references come from the built pages.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup, Tag
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rcbook.words import in_words

OPEN = re.compile(r"(:{3,}|`{3,})\{(exercise|solution)(-start)?\} *(.*)")
ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?) *<([^`>]+)>|([^`]+))`")


def said(tag: Tag) -> str:
    return " ".join(tag.get_text().split())


def figures(page: Path, html: BeautifulSoup) -> Iterator[tuple[str, Path, str, str]]:
    """Number such as 05.1, file, caption and alternative text of each numbered figure of a page."""
    for figure in html.select("figure:has(img):has(.caption-number)"):
        number, image = said(figure.select_one(".caption-number")).removeprefix("Fig. "), figure.img
        chapter, dot, place = number.partition(".")
        name = f"{chapter:0>2}.{place}" if dot else number
        yield name, page.parent / image["src"], said(figure.select_one(".caption-text")), image["alt"]


def words(html: BeautifulSoup) -> dict[str, str]:
    """Label -> the words of a page's references to it, or the number of the exercise."""
    links = html.select('a.reference.internal[href*="#"]')
    found = {link["href"].partition("#")[2].removeprefix("equation-"): said(link) for link in links}
    exercises = html.select(".exercise[id]:has(.caption-number)")
    return found | {box["id"]: said(box.select_one(".caption-number")) for box in exercises}


def resolved(text: str, known: dict[str, str]) -> str:
    """Markdown whose references are words.

    >>> resolved("By {eq}`eq-a` and {numref}`chapter %s <ch-a>`", {"eq-a": "(5.1)", "ch-a": "Chapter 5"})
    'By (5.1) and chapter 5'
    """

    def in_place(role: re.Match[str]) -> str:
        label = role[2] or role[3]
        name = known.get(label, in_words(label))
        return (role[1] or name).replace("%s", name.split(" ")[-1])

    return ROLE.sub(in_place, text)


def exercises(notebook: nbformat.NotebookNode, known: dict[str, str]) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Cells, each with its kind: exercise or solution."""
    kind, close, name, lines = "", "", "", []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if kind:
                yield kind, new_code_cell(cell.source, outputs=cell.outputs, execution_count=cell.execution_count)
            continue
        for line in cell.source.splitlines():
            if not kind and (opened := OPEN.match(line)):
                fence, kind, gated, title = opened.groups()
                close, lines = f"```{{{kind}-end}}" if gated else fence, []
                name = f"Solution of {known.get(title, title)}" if kind == "solution" else title
            elif kind and line.startswith(":label: "):
                name = f"{known.get(line.split()[1], line.split()[1])}: {name}"
            elif kind and line.strip() == close:
                yield kind, text(name, lines, known)
                kind = name = ""
            elif kind and not line.startswith(":class:") and (lines or line != "```"):
                lines.append(line)
        if kind and "".join(lines).strip():
            yield kind, text(name, lines, known)
            name, lines = "", []


def text(name: str, lines: list[str], known: dict[str, str]) -> nbformat.NotebookNode:
    return new_markdown_cell("\n".join([f"## {name}\n"] * bool(name) + [resolved("\n".join(lines), known).strip()]))


def write(html: Path, notebooks: list[Path], target: Path) -> None:
    """Write the kit into the folder."""
    pages = {path: BeautifulSoup(path.read_bytes(), "html.parser") for path in sorted(html.rglob("*.html"))}
    known = {label: name for page in pages.values() for label, name in words(page).items()}
    for folder in ("figures", "exercises", "exercises_with_solutions"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    found, captions = [figure for page in pages.items() for figure in figures(*page)], ["# Figures of the book\n"]
    for number, file, caption, alt in sorted(found, key=lambda figure: [*map(int, figure[0].split("."))]):
        (target / "figures" / f"{number}{file.suffix}").write_bytes(file.read_bytes())
        captions.append(f"- **{number}** {caption} *Alternative text:* {alt}")
    (target / "figures" / "captions.md").write_text("\n".join(captions) + "\n", encoding="utf-8")
    for path in notebooks:
        cells = list(exercises(nbformat.read(path, as_version=4), known))
        setup = [
            new_markdown_cell("Labs use names of the chapter, which the next cell runs."),
            new_code_cell(f"%run ../../{path.parent.name}/{path.name}"),
        ]
        for folder, kinds in (("exercises", {"exercise"}), ("exercises_with_solutions", {"exercise", "solution"})):
            kept = [*setup, *(cell for kind, cell in cells if kind in kinds and cell.source.strip())]
            copies = [nbformat.from_dict({**cell, "id": f"cell-{place}"}) for place, cell in enumerate(kept)]
            if cells:
                nbformat.write(new_notebook(cells=copies), target / folder / path.name)
