"""Tables of the book from outputs of cells: numbered, captioned, in one look, in HTML and LaTeX alike.

A cell that shows a `DataFrame` gets a number, a caption and a label by its metadata, as a cell with a figure does:
``{"mystnb": {"table": {"caption": "Message first. Then what rows and columns are.", "name": "tab-rates"}}}``; text
refers to it by ``{numref}`tab-rates```. The caption is MyST. Where a cell shows several tables the entry is a list
with one such entry for each. ``"least"`` names the columns whose least number is bold, in each group of rows, or is
``"column"`` for all of them, ``"row"`` for the least number of each row, or ``{"row": [...]}`` for that of some
columns, where others hold other numbers; ``"reference"`` names rows that do not compete, such as the truth. The
output itself stays what pandas wrote, which the comparison of outputs guards; this module builds a docutils table
from it: the names of index and columns stand in one head, numbers and their heads at the right, with true minus
signs, powers of ten and commas, raw names become words (`rcbook.words`), and what is missing a dash. A table in the
text is written with the directive ``{table}`` or ``{list-table}``, a title and ``:name:``.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from rcbook.words import in_words
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

BRIEF = 24  # letters of a name of a row that stays in one line
LONG = 30  # rows of a table that Sphinx lets go on over pages of LaTeX, where columns of wrapped text are unknown
MINUS = re.compile(r"(?<![\w)\]])-(?=[\d.]|inf)|(?<=\de)-(?=\d)")
AMOUNT = re.compile(r"[−+±<>≤≥≈=×·/%()\[\],;:.\s\d–→✓*†e^]*|−?(?:inf|∞)")
POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+−]?)0*(\d+)(?!\w)")
THOUSANDS = re.compile(r"(?<![\d.,])\d{5,}(?!\d)")
ANSWERS = {"True": "yes", "False": "no"} | dict.fromkeys(("NaN", "nan", "None", "<NA>", "NaT"), "–")

Least = str | Sequence[str] | dict[str, list[str]]


class Cell(NamedTuple):
    """An entry of a table: its text, over how many columns and rows it goes, and whether it is the best of some."""

    text: str
    columns: int = 1
    rows: int = 1
    bold: bool = False


def said(text: str) -> str:
    """The text as the book writes it: words for raw names, true minus signs, yes or no, a dash for what is missing."""
    text = " ".join(text.split())
    return ANSWERS.get(text) or MINUS.sub("−", in_words(text))


def cells(row: Tag) -> list[Cell]:
    """The entries of a row."""
    found = row.find_all(["th", "td"])
    return [Cell(said(c.get_text()), int(c.get("colspan", 1)), int(c.get("rowspan", 1))) for c in found]


def columns_only(row: list[Cell], stubs: int) -> list[Cell]:
    """A row of the head without what stands above the index."""
    while stubs > 0:
        stubs, row = stubs - row[0].columns, row[1:]
    return row


def one_head(rows: list[list[Cell]], stubs: int) -> list[list[Cell]]:
    """The head with the names of the index, which pandas puts into a row of their own, beside those of the columns.

    `stubs` is how many columns the index has. A name that all columns have in common goes above them.
    """
    if len(rows) < 2 or not stubs or any(cell.text for cell in rows[-1][stubs:]):
        return rows
    *above, names = rows
    columns = [columns_only(row, stubs) for row in above]
    common = above[0][stubs - 1].text
    if common and len(above) == 1:
        columns.insert(0, [Cell(common, sum(cell.columns for cell in columns[0]))])
    return [[Cell(name.text, rows=len(columns)) for name in names[:stubs]] + columns[0], *columns[1:]]


def numeric(body: list[list[Cell]], width: int) -> list[bool]:
    """Which columns hold amounts and nothing else; an entry over several rows counts in its own."""
    values: list[list[str]] = [[] for _ in range(width)]
    below = [0] * width  # rows that an entry above still takes, by column
    for row in body:
        free = iter([column for column in range(width) if not below[column]])
        below = [max(left - 1, 0) for left in below]
        for cell in row:
            column = next(free)
            values[column].append(cell.text)
            below[column] = cell.rows - 1
    return [bool(set(found) - {"", "–"}) and all(AMOUNT.fullmatch(v) for v in found if v) for found in values]


def amount(text: str) -> float:
    """The number of an entry, infinite if it holds none."""
    try:
        return float(text.split(" ± ")[0].replace("−", "-"))
    except ValueError:
        return float("inf")


def emphasised(
    body: list[list[Cell]], heads: list[str], stubs: int, least: Least, reference: Sequence[str]
) -> list[list[Cell]]:
    """The rows with their least numbers bold: of each row, or of each column named, in each group of rows."""
    width = len(heads)
    named = least.get("row", []) if isinstance(least, dict) else least
    chosen = [k for k, head in enumerate(heads) if named in ("row", "column") or head in named]
    if named not in ("row", "column") and len(chosen) != len(named):
        raise ExtensionError(f"no columns {named} among {heads}")
    if least == "row" or isinstance(least, dict):
        sets = [[(row, column) for column in chosen] for row in range(len(body))]
    else:
        starts = [k for k, row in enumerate(body) if len(row) == stubs + width]  # of groups, if any has two rows
        starts = starts if len(starts) < len(body) else [0]
        groups = [range(a, b) for a, b in zip(starts, [*starts[1:], len(body)])]
        sets = [[(row, column) for row in group] for group in groups for column in chosen]
    names = [row[-width - 1].text for row in body]
    if unknown := set(reference) - set(names):
        raise ExtensionError(f"no rows {sorted(unknown)} among {names}")
    body = [list(row) for row in body]
    for places in sets:
        places = [(row, column) for row, column in places if names[row] not in reference]
        values = [amount(body[row][column - width].text) for row, column in places]
        for (row, column), value in zip(places, values, strict=True):
            if value == min(values) < max(values):
                body[row][column - width] = body[row][column - width]._replace(bold=True)
    return body


def written(text: str) -> nodes.paragraph:
    """The text of an entry with powers of ten for exponents, and thousands apart where it is a number."""
    if AMOUNT.fullmatch(text):
        text = THOUSANDS.sub(lambda found: f"{int(found[0]):,}", text)
    text, node, position = re.sub(r"\binf\b", "∞", text), nodes.paragraph(), 0
    for found in POWER.finditer(text):
        mantissa, sign, exponent = found.groups()
        factor = "" if mantissa == "1" else f"{mantissa} × "
        if exponent == "0":
            node += nodes.Text(text[position : found.start()] + mantissa)
        else:
            power = nodes.superscript(text=f"{sign.strip('+')}{exponent}")
            node.extend([nodes.Text(f"{text[position : found.start()]}{factor}10"), power])
        position = found.end()
    node += nodes.Text(text[position:])
    return node


def row_node(row: list[Cell], sides: list[bool], taken: list[int]) -> nodes.row:
    """A row of entries, those in columns of numbers at the right; ``taken`` says which columns go on from above."""
    node = nodes.row()
    column = 0
    for cell in row:
        while taken[column]:
            taken[column] -= 1
            column += 1
        paragraph = written(cell.text)
        if cell.bold:
            paragraph = nodes.paragraph("", "", nodes.strong("", "", *paragraph.children))
        entry = nodes.entry("", paragraph)
        entry["classes"] += ["brief"] if len(cell.text) <= BRIEF else []
        if cell.columns > 1:
            entry["morecols"] = cell.columns - 1
            entry["classes"] += ["over"]
        elif sides[column]:
            entry["classes"] += ["number"]
        if cell.rows > 1:
            entry["morerows"] = cell.rows - 1
        node += entry
        for _ in range(cell.columns):
            taken[column] = cell.rows - 1
            column += 1
    for rest in range(column, len(taken)):
        taken[rest] = max(taken[rest] - 1, 0)
    return node


def table(html: str, least: Least = (), reference: Sequence[str] = ()) -> list[nodes.Element]:
    """The docutils table of what pandas wrote, after the alignment of its columns for LaTeX."""
    found = BeautifulSoup(html, "html.parser").table
    body = [cells(row) for row in found.tbody.find_all("tr")]
    stubs = len(found.tbody.tr.find_all("th")) if body else 0
    head = one_head([cells(row) for row in found.thead.find_all("tr")], stubs)
    width = sum(cell.columns for cell in head[0])
    sides = numeric(body, width)
    if least:
        body = emphasised(body, [cell.text for cell in head[-1]][-(width - stubs) :], stubs, least, reference)
    columns = (nodes.colspec(colwidth=1, stub=int(column < stubs)) for column in range(width))
    group = nodes.tgroup("", *columns, cols=width)
    for kind, rows in ((nodes.thead, head), (nodes.tbody, body)):
        taken = [0] * width
        group += kind("", *(row_node(row, sides, taken) for row in rows))
    letters = "lr" if len(head) + len(body) > LONG else "LR"
    spec = addnodes.tabular_col_spec(spec="".join(letters[side] for side in sides))
    return [spec, nodes.table("", group, classes=["dataframe"])]


def named(options: dict[str, Any], node: nodes.table, data: MimeData, renderer: NbElementRenderer) -> None:
    """Give a table its caption, read as MyST, and its label."""
    parsed = nodes.Element()
    with renderer.renderer.current_node_context(parsed):
        renderer.renderer.nested_render_text(options["caption"], data.line)
    if len(parsed) != 1 or not isinstance(parsed[0], nodes.paragraph):
        raise ExtensionError(f"the caption of {options['name']} must be one paragraph")
    node.insert(0, nodes.title("", "", *parsed[0].children))
    node["names"].append(nodes.fully_normalize_name(options["name"]))
    renderer.renderer.document.note_explicit_target(node, node)


def render_text_html(self: NbElementRenderer, data: MimeData) -> list[nodes.Element]:
    """What MyST-NB does with HTML, but a table of pandas becomes a table of the document."""
    if 'class="dataframe"' not in data.string:
        return usual_rendering(self, data)
    options = data.cell_metadata.get("mystnb", {}).get("table", [])
    if not options:
        return table(data.string)
    options = options if isinstance(options, list) else [options]
    _, outputs = self.renderer.nb_client.code_cell_outputs(data.cell_index)
    position = sum("text/html" in output.get("data", ()) for output in outputs[: data.output_index])
    chosen = options[position]
    rendered = table(data.string, chosen.get("least", ()), chosen.get("reference", ()))
    named(chosen, rendered[-1], data, self)
    return rendered


def prefer_tables(app: Sphinx, config: Config) -> None:
    """Let LaTeX take the table, too, rather than the text beside it."""
    config.nb_mime_priority_overrides = [*config.nb_mime_priority_overrides, ("latex", "text/html", 1)]


usual_rendering = NbElementRenderer.render_text_html


def setup(app: Sphinx) -> dict[str, bool]:
    NbElementRenderer.render_text_html = render_text_html
    app.connect("config-inited", prefer_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
