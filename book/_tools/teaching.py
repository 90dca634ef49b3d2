"""The teacher's kit of the archive: the figures under the book's numbers, and the exercises as notebooks.

``figures/05.1.svg`` is figure 5.1; ``figures/captions.md`` lists numbers, captions and alternative texts. Each chapter
with exercises gives two notebooks, one with solutions. Numbers and the words of references come from the built pages.
"""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rcbook.words import in_words

FIGURE = re.compile(
    r'<figure [^>]*>\s*(?:<a [^>]*>)?<img alt="([^"]*)"[^>]* src="([^"]+)"[^>]*/?>(?:(?!</figure>).)*?'
    r'<span class="caption-number">Fig\. ([\d.]+) ?</span><span class="caption-text">(.*?)</span><a class="headerlink',
    re.DOTALL,
)
LINK = re.compile(r'<a class="reference internal" href="[^"#]*#(?:equation-)?([^"]+)"[^>]*>(.*?)</a>', re.DOTALL)
EXERCISE = re.compile(r'id="([^"]+)">\s*<p class="admonition-title"><span class="caption-number">(Exercise [\d.]+)')
OPEN = re.compile(r"(:{3,}|`{3,})\{(exercise|solution)(-start)?\} *(.*)")
ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?) *<([^`>]+)>|([^`]+))`")


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def figures(html: Path) -> Iterator[tuple[str, Path, str, str]]:
    """Number such as 05.1, file, caption and alternative text of each numbered figure of the pages."""
    for page in sorted([*html.glob("chapters/*.html"), *html.glob("book/*.html")]):
        for alt, source, number, caption in FIGURE.findall(page.read_text(encoding="utf-8")):
            yield (
                number if "." not in number else number.zfill(len(number.split(".")[1]) + 3),
                page.parent / source,
                plain(caption),
                unescape(alt),
            )


def words(html: Path) -> dict[str, str]:
    """Label -> the words of the pages' references to it, or the number of the exercise."""
    texts = [page.read_text(encoding="utf-8") for page in sorted(html.rglob("*.html"))]
    found = {label: plain(text) for html_text in texts for label, text in LINK.findall(html_text)}
    return found | {label: number for html_text in texts for label, number in EXERCISE.findall(html_text)}


def resolved(text: str, known: dict[str, str]) -> str:
    """Markdown whose references are words.

    >>> resolved("By {eq}`eq-a` and {numref}`chapter %s <ch-a>`", {"eq-a": "(5.1)", "ch-a": "Chapter 5"})
    'By (5.1) and chapter 5'
    """

    def said(role: re.Match[str]) -> str:
        shown, label = role[1], role[2] or role[3]
        name = known.get(label, in_words(label))
        return (shown or name).replace("%s", name.split(" ")[-1])

    return ROLE.sub(said, text)


def exercises(notebook: nbformat.NotebookNode, known: dict[str, str]) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Cells, each with its kind: exercise or solution."""
    kind, close, lines = "", "", []
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
                yield kind, new_markdown_cell(text(name, lines, known))
                kind = name = ""
            elif kind and not line.startswith(":class:") and (lines or line != "```"):
                lines.append(line)
        if kind and "".join(lines).strip():
            yield kind, new_markdown_cell(text(name, lines, known))
            name, lines = "", []


def text(name: str, lines: list[str], known: dict[str, str]) -> str:
    return "\n".join([f"## {name}\n"] * bool(name) + [resolved("\n".join(lines), known).strip()])


def write(html: Path, notebooks: list[Path], target: Path) -> None:
    """Write the kit into the folder."""
    known, captions = words(html), ["# Figures of the book\n"]
    for folder in ("figures", "exercises", "exercises_with_solutions"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    for number, file, caption, alt in sorted(figures(html), key=lambda figure: [*map(int, figure[0].split("."))]):
        (target / "figures" / f"{number}{file.suffix}").write_bytes(file.read_bytes())
        captions.append(f"- **{number}** {caption} *Alternative text:* {alt}")
    (target / "figures" / "captions.md").write_text("\n".join(captions) + "\n", encoding="utf-8")
    for path in notebooks:
        found = list(exercises(nbformat.read(path, as_version=4), known))
        if not found:
            continue
        setup = [
            new_markdown_cell("Labs use names of the chapter, which the next cell runs."),
            new_code_cell(f"%run ../../{path.parent.name}/{path.name}"),
        ]
        for folder, kinds in (("exercises", {"exercise"}), ("exercises_with_solutions", {"exercise", "solution"})):
            cells = [*setup, *(cell for kind, cell in found if kind in kinds and cell.source.strip())]
            copies = [nbformat.from_dict({**cell, "id": f"cell-{place}"}) for place, cell in enumerate(cells)]
            nbformat.write(new_notebook(cells=copies), target / folder / path.name)
