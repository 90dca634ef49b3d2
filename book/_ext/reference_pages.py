"""What autodoc makes of the docstrings, in words: no remarks of Python on itself in the reference.

The fields of a named tuple stand in its signature and are described in its docstring; what Python says of each, "Alias
for field number 0", is left out. A default that is made anew is an ellipsis, and a function stands by its name. The
docstring of a property or of data may hold a colon; napoleon would take what is before it for a type. Of attributes
that share a description napoleon makes one field, which Sphinx would take for a name after its type: each gets its own.
Then names in a row that share a description share an item. Attributes are headed *Attributes*, as in numpydoc.
``{other-library}`` shows the stored comparison with another library, values and times.
"""

import re
from typing import Any

import output_tables
import pandas as pd
from docutils import nodes
from rcbook.experiments.runner import as_printed
from rcbook.experiments.store import table_path
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.util.docutils import SphinxDirective

FILE = table_path("study", "beside-pybregman")
VALUES = {"direct_formula": "direct formula", "rcpkg": "rcpkg", "pybregman": "pyBregMan"}
TIMES = {"rcpkg_us": "a pair", "rcpkg_batch_us": "a pair in a batch", "pybregman_us": "a pair of pyBregMan"}
FUNCTION = re.compile(r"<function ([\w.]+)(?: at 0x\w+)?>")
LAMBDA = re.compile(r"<function [\w.<>]*<lambda>(?: at 0x\w+)?>|<factory>")


def skipped(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out a field that has the docstring of Python."""
    return True if str(getattr(member, "__doc__", "")).startswith("Alias for field number") else None


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Defaults as a reader would write them."""
    if arguments:
        arguments = FUNCTION.sub(r"\1", LAMBDA.sub("...", arguments)).replace(str(1 / 3), "1/3")
    return arguments, returned


def docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Break the first line of such a docstring after its colon, where napoleon finds no type before it."""
    if what in ("property", "attribute", "data") and lines:
        lines[:1] = re.split(r"(?<=[^:]:) ", lines[0], maxsplit=1)


DEFAULT = re.compile(r"=`([\w.]+)`")  # in a type backticks are shown as they are
SHARED = re.compile(r":(ivar|vartype) ([^:]*,[^:]*):")


def spread(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A field for each of the attributes that napoleon has put into one, with the lines of its description; types."""
    found: list[str] = []
    while lines:
        field = [lines.pop(0)]
        if shared := SHARED.match(field[0]):
            while lines and lines[0].startswith(" "):
                field.append(lines.pop(0))
            head = field[0].removeprefix(shared[0])
            for attribute in shared[2].split(","):
                found += [f":{shared[1]} {attribute.strip()}:{head}", *field[1:]]
        else:
            found += field
    lines[:] = [DEFAULT.sub(r"=\1", line) if line.startswith(":type") else line for line in found]


def merge(app: Sphinx, doctree: nodes.document) -> None:
    """One item for names in a row of which the reference says the same."""
    for fields in doctree.findall(nodes.field_list):
        for items in fields.findall(nodes.bullet_list):
            first, text, end = None, "", 0
            for item in list(items):
                if first is not None and said(item[0]) == text:
                    first[end:end] = [nodes.Text(", "), item[0][0]]
                    end += 2
                    items.remove(item)
                else:
                    first, text, end = item[0], said(item[0]), 1


def said(paragraph: nodes.Element) -> str:
    """What stands behind the name of an item."""
    return "".join(node.astext() for node in paragraph[1:])


def rounded(time: float) -> str:
    """A time to two digits."""
    return f"{float(f'{time:.2g}'):g}"


def span(times: pd.Series) -> str:
    """The least and the largest of several times."""
    return f"{rounded(times.min())} to {rounded(times.max())}"


class OtherLibrary(SphinxDirective):
    """``{other-library}``: no argument, no content."""

    def run(self) -> list[nodes.Node]:
        stored = as_printed("study", "beside-pybregman", FILE).set_index("quantity")
        alike = int(stored[list(VALUES)].round(6).eq(stored.direct_formula.round(6), axis=0).all(axis=1).sum())
        self.env.note_dependency(str(FILE))
        (versions,) = stored.versions.unique()
        shown = []
        for caption, columns, digits in (
            (f"Both give the value of the formula in {alike} of {len(stored)} rows.", VALUES, "{:.4f}".format),
            (
                f"A pair takes rcpkg {span(stored.rcpkg_us)} microseconds and pyBregMan {span(stored.pybregman_us)}. "
                f"Versions: {versions}.",
                TIMES,
                rounded,
            ),
        ):
            frame = stored[list(columns)].rename(columns=columns).map(digits)
            tables = output_tables.table(frame.to_html())
            tables[-1].insert(0, nodes.title(text=caption))
            shown += tables
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("other-library", OtherLibrary)
    app.connect("autodoc-skip-member", skipped)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", spread, priority=600)  # behind it
    app.connect("doctree-read", merge)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
