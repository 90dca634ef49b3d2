"""The book on paper: what the pages fold, number and move by scripts, said to LaTeX.

Sphinx writes the LaTeX. Before it does, `Printed` makes plain what only HTML knows: a result, a proof or a solution
becomes its text between two commands of ``printed.sty``, a cell its code and outputs, a check its verdict, a picture
that moves the still that its caption names. Numbers are those of the pages. Tables are fitted to the line.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from docutils import nodes
from rcbook import citation
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter
from sphinx.util.texescape import escape
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node
from sphinx_proof.nodes import NODE_TYPES, proof_node, unenumerable_node

FOLDED = {"tag_hide-input", "tag_hide-cell", "tag_remove-input"}
CHECKED = "checked: "
EXERCISES = (exercise_node, exercise_enumerable_node, solution_node)
LINE = 455  # points that a line is wide
SIZES = {"footnotesize": 8, "scriptsize": 7, "tiny": 5}  # of letters in tables, in points
GAP = 0.95  # ems between two columns
HIGH = 200  # points of letters that the lines of a table are high which goes on over pages
# Sphinx would name them after the first part
CONTENTS = "\\def\\contentsname{Contents}\\sphinxtableofcontents\n\\bookunnumbered\n"
WORD = re.compile(r"[\s–/-]+|(?<=[a-z])\.(?=[a-z])")
COMMAND = re.compile(r"\\[A-Za-z]+|[{}^$&\\]")
WIDE, NARROW = re.compile(r"[A-ZmwM−±%θΣ]"), re.compile(r"[iljtfr.,;:()\[\]'| ]")


def latex(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


def framed(kind: str, title: list[nodes.Node], inside: list[nodes.Node], label: str = "") -> list[nodes.Node]:
    """Nodes in an environment of ``printed.sty`` whose argument is the title."""
    opening = [latex(f"\\begin{{{kind}}}{{%"), nodes.inline("", "", *title), latex(f"}}{label}")]
    return [*opening, *inside, latex(f"\\end{{{kind}}}\n")]


def page_of(node: nodes.Node, root: str) -> str:
    """The name of the page that a node of the whole book comes from."""
    while node.parent is not None and not isinstance(node, addnodes.start_of_file):
        node = node.parent
    return node.get("docname", root)


class VectorFigures(ImageConverter):
    """SVG to PDF by ``rsvg-convert``."""

    conversion_rules: ClassVar = [("image/svg+xml", "application/pdf")]

    def is_available(self) -> bool:
        return self.app.builder.format == "latex"

    def convert(self, _from: str | os.PathLike[str], _to: str | os.PathLike[str]) -> bool:
        """Convert one figure, unless that was done before."""
        if os.path.exists(_to) and os.path.getmtime(_to) > os.path.getmtime(_from):
            return True
        try:
            subprocess.run(["rsvg-convert", "--format=pdf", "--output", _to, _from], check=True)
        except FileNotFoundError as missing:
            raise ExtensionError("figures in print need rsvg-convert (Debian: librsvg2-bin)") from missing
        return True


class Printed(SphinxPostTransform):
    """The whole book, in one document, without what only HTML knows."""

    default_priority = 300  # references and pictures are resolved
    formats = ("latex",)

    def run(self, **kwargs: object) -> None:
        self.name_parts()
        for page in self.document.findall(addnodes.start_of_file):
            page[:] = page.children  # Sphinx has left them with the page as their parent that they were read from
            self.number_chapter(page)
        changes = (
            (self.moving_picture, nodes.raw),
            (self.figure, nodes.figure),
            (self.cell, nodes.container),
            (self.result, (*NODE_TYPES.values(), unenumerable_node)),
            (self.proof, proof_node),
            (self.exercise, EXERCISES),
            (self.fold, (nodes.container, nodes.admonition)),
            (self.formula, nodes.math_block),
            (self.table, nodes.table),
        )
        for change, kind in changes:
            for node in [found for found in self.document.findall() if isinstance(found, kind)]:
                changed = change(node)
                if changed is not None:  # not by `replace_self`, which would hand classes on to LaTeX
                    place = node.parent.index(node)
                    node.parent[place : place + 1] = changed

    def number(self, node: nodes.Element, kind: str) -> str:
        """The number that the pages give to a figure, a result, …; empty if none."""
        numbers = self.env.toc_fignumbers.get(page_of(node, self.config.root_doc), {}).get(kind, {})
        return next((".".join(map(str, numbers[i])) for i in node["ids"] if i in numbers), "")

    def labels(self, node: nodes.Element) -> str:
        page = page_of(node, self.config.root_doc)
        return "".join(f"\\phantomsection\\label{{\\detokenize{{{page}:{i}}}}}" for i in node["ids"]) + "%"

    def name_parts(self) -> None:
        """The front page becomes a chapter, and the captions of the contents become parts."""
        top = self.document[0]
        title, *body = top.children
        preface = nodes.section("", nodes.title(text="About this book"), ids=["about-this-book"])
        parts: list[nodes.Node] = []
        for child in body:
            if "toctree-wrapper" in child.get("classes", ()):
                parts += [latex(f"\\bookpart{{{escape(child['part'], 'xelatex')}}}\n"), child]
            else:
                preface += child
        top[:] = [title, self.title_page(), latex(CONTENTS), preface, *parts]

    def title_page(self) -> nodes.raw:
        entry, picture = citation.citation(), self.still("fig-rc-idea").next_node(nodes.image)
        title, _, subtitle = entry["title"].partition(": ")
        said = (title, subtitle, "; ".join(citation.authors(entry)), entry["version"], str(entry["date-released"]))
        said = (*(escape(text, "xelatex") for text in said), self.env.images[picture["uri"]][1])
        return latex("\\booktitlepage" + "".join(f"{{{text}}}" for text in said))

    def still(self, label: str) -> nodes.figure:
        return next(figure for figure in self.document.findall(nodes.figure) if label in figure["ids"])

    def number_chapter(self, page: addnodes.start_of_file) -> None:
        numbers = self.env.toc_secnumbers.get(page["docname"], {}).get("", ())
        if len(numbers) < 2:
            page.insert(0, latex(f"\\bookchapter{{{numbers[0]}}}\n" if numbers else "\\bookunnumbered\n"))

    def moving_picture(self, raw: nodes.raw) -> list[nodes.Node] | None:
        """The still that the caption below names."""
        if not raw.astext().startswith('<figure class="moving"'):
            return None
        caption = raw.parent[raw.parent.index(raw) + 1]
        named = next(ref["refuri"].split("#")[1] for ref in caption.findall(addnodes.number_reference))
        return [self.still(named).next_node(nodes.image).deepcopy()]

    def figure(self, figure: nodes.figure) -> list[nodes.Node]:
        """With its number."""
        number = self.number(figure, "figure")
        return [latex(f"\\booknumber{{figure}}{{{number}}}"), figure] if number else [figure]

    def cell(self, cell: nodes.container) -> list[nodes.Node] | None:
        """The verdict of a check; of another cell the outputs, and the code unless the page folds it."""
        if cell.get("nb_element") != "cell_code":
            return None
        shown = [part for part in cell if not (FOLDED & set(cell["classes"]) and "cell_input" in part["classes"])]
        if any(name.startswith("tag_check") for name in cell["classes"]):
            verdict = cell[-1].astext().strip().removeprefix(CHECKED)
            return [latex(f"\\bookcheck{{{escape(verdict, 'xelatex')}}}")]
        return [node for part in shown for node in part.children]

    def result(self, result: nodes.Element) -> list[nodes.Node]:
        """A theorem, an algorithm, …, under its number and name."""
        name, content = result.children[0], result.children[1:]
        number = self.number(result, result.get("countertype", ""))
        title = [nodes.Text(f"{result['realtype'].title()} {number}"), *name.children]
        inside = [node for part in content for node in (part.children if isinstance(part, nodes.section) else [part])]
        return framed("bookresult", title, inside, self.labels(result))

    def proof(self, proof: proof_node) -> list[nodes.Node]:
        content = proof[0].children
        first = content[0][0] if isinstance(content[0], nodes.paragraph) else nodes.Text("")
        if first.astext().startswith("Proof. "):
            first.parent[:1] = [nodes.emphasis(text="Proof."), nodes.Text(first.astext().removeprefix("Proof."))]
        return [latex("\\begin{bookproof}"), *content, latex("\\end{bookproof}\n")]

    def exercise(self, exercise: nodes.Element) -> list[nodes.Node]:
        title, *content = exercise.children
        inside = [node for part in content for node in (part.children if isinstance(part, nodes.section) else [part])]
        label = f"{self.labels(exercise)}\n\\label{{exercise:{exercise['label']}}}%"
        kind = "booksolution" if isinstance(exercise, solution_node) else "bookexercise"
        return framed(kind, title.children, inside, label)

    def fold(self, box: nodes.Element) -> list[nodes.Node] | None:
        """What the page folds stands open; the link of a card joins its title."""
        if box.get("design_component") == "card":
            (title, *inside), link = box
            return framed("bookfold", [*title.children, nodes.Text(": "), *link.children], inside)
        if box.get("design_component") != "dropdown" and not (
            isinstance(box, nodes.admonition) and "dropdown" in box["classes"]
        ):
            return None
        if isinstance(box[0], nodes.rubric | nodes.title):
            return framed("bookfold", box[0].children, box.children[1:])
        return box.children

    def formula(self, formula: nodes.math_block) -> None:
        """The writer takes the LaTeX of a formula that need not be wrapped as it is."""
        text = formula.astext().strip()
        if formula.get("nowrap") or "\\begin{align}" in text:
            return
        number = self.number(formula, "displaymath")
        if number:
            label = f"\\label{{equation:{formula['docname']}:{formula.attributes.pop('label')}}}"
            text = (
                f"\\booknumber{{equation}}{{{number}}}%\n"
                f"\\begin{{equation}}{label}\\bookfit[3.5em]{{{text}}}\\end{{equation}}\n"
            )
        else:
            text = f"\\begin{{equation*}}\\bookfit{{{text}}}\\end{{equation*}}\n"
        formula["nowrap"] = True
        formula[:] = [nodes.Text(text)]

    def table(self, table: nodes.table) -> list[nodes.Node]:
        """In letters of a size, and columns of widths, that fit the line."""
        above = table.parent[table.parent.index(table) - 1]
        if isinstance(above, addnodes.tabular_col_spec):
            above.parent.remove(above)
        size, spec, high = fitted(table)
        number = self.number(table, "table")
        said = f"\\booknumber{{table}}{{{number}}}" if number else "\\booknoname"
        table["classes"] = ["longtable"] if high > HIGH else []
        inside = [addnodes.tabular_col_spec(spec=spec), table]
        return [latex(f"\\begin{{bookshrunk}}{{\\{size}{said}}}"), *inside, latex("\\end{bookshrunk}\n")]


def texts_of(entry: nodes.entry) -> list[str]:
    """What a cell has on paper, paragraph by paragraph."""
    return [part.astext() for part in entry.findall(nodes.paragraph)] or [entry.astext()]


def width(text: str) -> float:
    """How wide a text is, in ems, on the safe side."""
    text = COMMAND.sub("", text)
    wide, narrow = len(WIDE.findall(text)), len(NARROW.findall(text))
    return 0.88 * wide + 0.34 * narrow + 0.56 * (len(text) - wide - narrow)


class Measures(NamedTuple):
    """Of each column the longest word, the longest line and whether it holds numbers; the width of each cell's text.

    Widths are in ems; a cell that spans columns counts as empty.
    """

    words: np.ndarray
    lines: np.ndarray
    numbers: np.ndarray
    body: np.ndarray


def measured(table: nodes.table) -> Measures:
    """All that the widths of the columns depend on."""
    columns = sum(1 for _ in table.findall(nodes.colspec))
    words, lines, numbers = np.ones(columns), np.ones(columns), np.zeros(columns, int)
    below, body = [0] * columns, []
    for row in table.findall(nodes.row):
        free = [column for column in range(columns) if not below[column]]
        below = [max(left - 1, 0) for left in below]
        cells = np.zeros(columns)
        for entry in row:
            across = entry.get("morecols", 0) + 1
            column = free[0]
            for taken in free[:across]:
                below[taken] = entry.get("morerows", 0)
            free = free[across:]
            if across == 1:
                bold = 1.08 if isinstance(row.parent, nodes.thead) else 1
                texts = [bold * width(text) for text in texts_of(entry)]
                cells[column] = sum(texts)
                lines[column] = max(lines[column], *texts)
                words[column] = max(
                    words[column], *(bold * width(word) for text in texts_of(entry) for word in WORD.split(text))
                )
                numbers[column] |= "number" in entry["classes"]
        if isinstance(row.parent, nodes.tbody):
            body.append(cells)
    return Measures(words, lines, numbers, np.array(body))


def fitted(table: nodes.table) -> tuple[str, str, float]:
    """The size of the letters of a table, what LaTeX is told of its columns, and how high its rows are, in points."""
    words, lines, numbers, body = measured(table)
    fits = (size for size, points in SIZES.items() if words.sum() <= LINE / points - GAP * len(words))
    size = next(fits, "tiny")
    widths = shared(words, lines, body.mean(axis=0), LINE / SIZES[size] - GAP * len(words))
    spec = ""
    for line, share, number in zip(lines, widths, numbers, strict=True):
        spec += "lr"[number] if line <= share else f"{'PN'[number]}{{{share * SIZES[size] / LINE:.3f}}}"
    high = np.maximum(1, np.ceil(body / widths)).max(axis=1).sum() * SIZES[size]
    return size, f"@{{}}{spec}@{{}}", high


def shared(words: np.ndarray, lines: np.ndarray, texts: np.ndarray, room: float) -> np.ndarray:
    """Widths of columns: the largest multiple of their mean texts for which there is room.

    No column is narrower than its longest word or wider than its longest line.
    """
    tried = (np.clip(multiple * texts, words, lines) for multiple in np.geomspace(1000, 0.01, 400))
    return next((widths for widths in tried if widths.sum() <= room), words)


def remember_parts(app: Sphinx, doctree: nodes.document) -> None:
    """The names of the parts stand in the contents, which are gone when the book is one document."""
    for contents in doctree.findall(addnodes.toctree):
        contents.parent["part"] = contents.get("caption") or ""


def prepare(app: Sphinx, config: Config) -> None:
    """Let LaTeX take the vector graphics of a cell, and what stands in ``printed.sty``."""
    config.nb_mime_priority_overrides = [*config.nb_mime_priority_overrides, ("latex", "image/svg+xml", 2)]
    config.latex_elements = {**config.latex_elements, "maketitle": "", "tableofcontents": ""}  # `Printed` writes them
    config.latex_additional_files = [str(Path(__file__).with_suffix(".sty"))]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(VectorFigures)
    app.add_post_transform(Printed)
    app.connect("config-inited", prepare)
    app.connect("doctree-read", remember_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
