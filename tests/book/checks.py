"""What would mislead a reader of a chapter, each rule a function of a notebook that yields what it finds.

Proofs, labels and solutions are counted by the tests of the reference and of the archive; errors and warnings of cells
stop the build of the pages.
"""

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pandas as pd
from nbformat import NotebookNode
from rcbook.words import RAW, in_words
from sklearn.utils.discovery import all_displays, all_estimators, all_functions

ROOT = Path(__file__).resolve().parents[2]
FOLDED = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
UNSEEN = {"hide-cell", "hide-output", "remove-cell", "remove-output"}
MOST_WORDS, MOST_TABLES = 4_500, 6  # in view: a chapter is read in one sitting
LEAST_TEXT, PAGE = 9, 772  # pixels of text in figures, and of the text column of a page 1,300 wide
IGNORED = "nbval-ignore-output"  # of figures alone: nbval compares the digest of their numbers, which follows
UNCHECKED = {"nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"}
STATEMENT = re.compile(r"^[ \t]*(?::{3,}|`{3,})\{prf:(?:theorem|proposition|lemma|corollary)\}", re.MULTILINE)
LABEL = re.compile(r"^\(([\w:-]+)\)=|^[ \t]*:(?:label|name):[ \t]*(\S+)", re.MULTILINE)
OPEN_SOLUTION = re.compile(r"\{solution(?:-start)?\}[ \t]+(\S+)[ \t]*\n(?![ \t]*:class:.*dropdown)")
TEXT_TABLE = re.compile(r"^[ \t]*(?:\|[ :|-]+\|[ \t]*$|(?::{3,}|`{3,})\{list-table\})", re.MULTILINE)
CAPTIONED = re.compile(r"\{(?:list-)?table\}[ \t]*\S.*\n(?:[ \t]*:(?!name)\w+:.*\n)*[ \t]*:name: tab-")
DROPDOWN = re.compile(r"^[ \t]*(:{3,}|`{3,})\{dropdown\}(?s:.*?)\n[ \t]*\1[ \t]*$", re.MULTILINE)
ASIDE = re.compile(r"^(?:[ \t]*(?::{3,}|`{3,}|:[\w-]+:).*|\([\w:-]+\)=)$", re.MULTILINE)
FENCED = re.compile(r"^[ \t]*(`{3,})(\{?)[^\n]*\n(?s:.*?)^[ \t]*\1[ \t]*$", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*<!--(?s:.*?)-->\n?", re.MULTILINE)
ELSEWHERE = re.compile(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$|(?:Tables?|§) ?[\d.]+(?:(?:,| and| to) §?[\d.]+)*")
OURS = ("rcbook", "rcpkg")  # of a name in both, the library's counts
SPAN = re.compile(r"(?<![`}\\])`([^`\n]+)`(?!`)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*|[A-Z]{2,}\w*")
FILE = re.compile(r"LICENSE|Makefile|[A-Z]+_[A-Z_]+|[\w/.-]+\.(?:bib|cff|csv|ipynb|md|py|toml|txt|yml)")


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook: NotebookNode) -> str:
    """All text cells, one after the other, without comments and literal code blocks."""
    texts = (COMMENT.sub("", cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    return without_literals("\n\n".join(texts))


def without_literals(text: str) -> str:
    """The text without literal code blocks; directives between back-ticks stay."""
    return FENCED.sub(lambda block: block[0] if block[2] else "", text)


def plain_python(source: str) -> str:
    """The source without the lines that only IPython understands."""
    return re.sub(r"^[ \t]*[%!].*$", "", source, flags=re.MULTILINE)


def captions(cell: NotebookNode, kind: str) -> list[dict]:
    """What the metadata of a cell say of its figure or its tables."""
    entries = cell.metadata.get("mystnb", {}).get(kind, [])
    return entries if isinstance(entries, list) else [entries]


def shown(cell: NotebookNode, mime: str) -> list[str]:
    return [output.data[kind] for output in cell.outputs for kind in output.get("data", ()) if kind.startswith(mime)]


def comparison(notebook: NotebookNode) -> Iterator[str]:
    """Outputs are compared with those of a fresh run, but for pictures."""
    for cell in code_cells(notebook):
        yield from (f"{cell.id}: the tag {tag} switches a check off" for tag in UNCHECKED & set(tags(cell)))
        if IGNORED in tags(cell) and not captions(cell, "figure"):
            yield f"{cell.id}: only the output of a figure may be left out of the comparison"


def figures(notebook: NotebookNode) -> Iterator[str]:
    """A figure is one vector graphic with a name, a caption and an alternative text. The picture is left out of the
    comparison of outputs; the digest, which the next cell prints, is compared, and is not on the page."""
    cells = code_cells(notebook)
    for cell, follower in zip(cells, [*cells[1:], NotebookNode(source="", outputs=[], metadata={})], strict=True):
        if not captions(cell, "figure") and not shown(cell, "image/"):
            continue
        if len(cell.outputs) != 1 or not (drawn := shown(cell, "image/svg+xml")):
            yield f"{cell.id}: a figure cell shows one figure, by rcbook.figures.show, and nothing else"
        elif (size := smallest_text(drawn[0])) < LEAST_TEXT:
            yield f"{cell.id}: text of {size:.1f} px; at least {LEAST_TEXT}"
        yield from (f"{cell.id}: figure without the tag {tag}" for tag in {"hide-input", IGNORED} - set(tags(cell)))
        figure = {**cell.metadata.get("mystnb", {}).get("image", {}), **dict(*captions(cell, "figure"))}
        if not figure.get("name", "").startswith("fig-"):
            yield f"{cell.id}: figure without a name fig-…"
        for key in "caption", "alt":
            if len(figure.get(key, "").split()) < 5:
                yield f"{cell.id}: figure without {key}: a sentence that says what is seen"
        digests = re.findall(r"\bdigest\((\w+)", follower.source) if follower.outputs else None
        if digests != re.findall(r"\bshow\((\w+)", cell.source) or tags(follower) != ["remove-cell"]:
            yield f"{cell.id}: the next code cell must print the digest of this figure and be tagged remove-cell"


def smallest_text(drawing: str) -> float:
    """Of a drawing, in pixels on a page whose text is `PAGE` pixels wide."""
    width = re.search(r'width="([\d.]+)pt"', drawing)
    scales = [float(scale) for scale in re.findall(r"scale\(([\d.]+) -\1\)", drawing)] if width else []
    return min((100 * scale * min(4 / 3, PAGE / float(width[1])) for scale in scales), default=float("inf"))


def tables(notebook: NotebookNode) -> Iterator[str]:
    """A table in view has a label and a caption of its own, whose numbers are numbers of its cell, and no raw names."""
    text = f"{text_in_view(notebook)}\n"
    if (bare := len(TEXT_TABLE.findall(text)) - len(CAPTIONED.findall(text))) > 0:
        yield f"{bare} tables of the text without title and name"
    for cell in code_cells(notebook):
        entries, found = captions(cell, "table"), shown(cell, "text/html")
        if len(entries) != len(found) and (entries or not UNSEEN & set(tags(cell))):
            yield f"{cell.id}: {len(found)} tables, {len(entries)} captions"
        code = f"{cell.source} {code_below(cell, notebook)}" if entries else ""
        for html, entry in zip(found, entries):
            caption = ELSEWHERE.sub("", entry.get("caption", ""))
            if len(caption.split()) < 5 or not entry.get("name", "").startswith("tab-"):
                yield f"{cell.id}: table without a name tab-… and a caption that can stand alone"
            said = re.sub(r"<style(?s:.*?)</style>|<[^>]+>", " ", html)
            for number in {n.rstrip(",") for n in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", caption)}:
                if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", f"{said} {code}"):
                    yield f"{cell.id}: the caption's {number} is neither in the table nor in its code"
            yield from (f"{cell.id}: {raw} needs words in rcbook.words" for raw in RAW.findall(in_words(said)))
    entries = [entry for cell in code_cells(notebook) for entry in captions(cell, "table")]
    titles = Counter(entry.get("caption", "").split(". ")[0] for entry in entries)
    yield from (f"two tables say: {title}" for title, times in titles.items() if times > 1)


def code_below(cell: NotebookNode, notebook: NotebookNode) -> str:
    """The functions of `rcbook.draw` and `rcbook.trials` that a cell calls, with what they use of their module."""
    code = "\n".join(each.source for each in code_cells(notebook))
    imports = re.findall(r"from (rcbook\.(?:draw|trials)) import (\w+) as (\w+)", code)
    modules = {name: importlib.import_module(f"{room}.{subject}") for room, subject, name in imports}
    calls = re.findall(r"\b(\w+)\.(\w+)\(", cell.source)
    wanted, found = [(modules[module], name) for module, name in calls if module in modules], {}
    for module, name in wanted:  # which grows meanwhile
        value = vars(module).get(name)
        if name not in found and value is not None:
            written = inspect.isfunction(value) and value.__module__ == module.__name__
            found[name] = inspect.getsource(value) if written else repr(value) if name.isupper() else ""
            wanted += [(module, used) for used in re.findall(r"\w+", found[name])] if written else []
    return "\n".join(found.values())


def verdicts(notebook: NotebookNode) -> Iterator[str]:
    """The code of a check is folded; in view is the one line of `rcbook.checking.checked`, which asserts what it says.
    A check is tagged check:<label>, of a result, a table, a figure or a section. Nothing else prints a verdict."""
    labelled = labels(notebook)
    for cell in code_cells(notebook):
        found = [tag.removeprefix("check:") for tag in tags(cell) if tag.startswith("check:")]
        code = ast.parse(plain_python(cell.source))
        calls = [node for node in ast.walk(code) if isinstance(node, ast.Call) and ast.unparse(node.func) == "checked"]
        printed = "".join(out.get("text", "") for out in cell.outputs)
        if not found:
            if calls or "checked:" in printed:
                yield f"{cell.id}: gives a verdict and is not tagged check:<label>"
            continue
        if len(found) > 1 or "hide-input" not in tags(cell) or found[0] not in labelled:
            yield f"{cell.id}: a check has the tag hide-input and one tag check:<label>, labelled here: {found}"
        if calls != [getattr(code.body[-1], "value", None)]:
            yield f"{cell.id}: a check calls checked(…) once, in its last line"
        if not re.fullmatch(r"checked: .+\n", printed) or len(cell.outputs) != 1:
            yield f"{cell.id}: a check prints the verdict of checked(…) and nothing else"


def labels(notebook: NotebookNode) -> set[str]:
    """Labels of blocks and sections in the text, and names of the figures and tables of cells."""
    made = {e.get("name") for c in code_cells(notebook) for kind in ("figure", "table") for e in captions(c, kind)}
    return made | {label for pair in LABEL.findall(prose(notebook)) for label in pair}


def size(notebook: NotebookNode) -> Iterator[str]:
    """A chapter has one subject: folded proofs and code are not counted; solutions, with their labs, are. Supplements
    and pages of instructions have as many tables as they need."""
    if (words := words_in_view(notebook)) > MOST_WORDS:
        yield f"{words} words in view; at most {MOST_WORDS}"
    if (count := tables_in_view(notebook)) > MOST_TABLES and notebook.cells[0].source.startswith("(ch-"):
        yield f"{count} tables in view; at most {MOST_TABLES}"
    yield from (f"the solution of {label} is not folded" for label in OPEN_SOLUTION.findall(prose(notebook)))


def text_in_view(notebook: NotebookNode) -> str:
    """The text without dropdowns; solutions are in view before a script folds them, and on paper."""
    return DROPDOWN.sub("", prose(notebook))


def captions_in_view(notebook: NotebookNode, *kinds: str) -> list[dict]:
    """Those of the cells whose output is not folded."""
    cells = [cell for cell in code_cells(notebook) if not UNSEEN & set(tags(cell))]
    return [entry for cell in cells for kind in kinds for entry in captions(cell, kind)]


def words_in_view(notebook: NotebookNode) -> int:
    """Words of text and captions without directives, labels and options; a formula is as long as it is."""
    told = [entry.get("caption", "") for entry in captions_in_view(notebook, "figure", "table")]
    return len(" ".join([ASIDE.sub("", text_in_view(notebook)), *told]).split())


def lines_in_view(notebook: NotebookNode) -> int:
    return sum(len(c.source.splitlines()) for c in code_cells(notebook) if not FOLDED & set(tags(c)))


def tables_in_view(notebook: NotebookNode) -> int:
    """Tables of cells whose output is shown, and tables of the text."""
    return len(captions_in_view(notebook, "table")) + len(TEXT_TABLE.findall(text_in_view(notebook)))


def results_in_view(notebook: NotebookNode) -> int:
    """Theorems and their kind outside of folds."""
    return len(STATEMENT.findall(text_in_view(notebook)))


def symbols(text: str, code: str = "") -> Iterator[str]:
    """Every public symbol named in prose exists.

    Inline code that begins with ``rcpkg.`` or ``rcbook.`` is a dotted path. Inline code that is a capitalised name,
    alone or with a call or an attribute (``QDA``, ``QDA(prior_strength=1)``, ``QDA.fit``), is public in a module of
    ours, in scikit-learn, pandas or Python, or a word of the code beside the text; attributes and keywords exist, too.
    Other inline code (parameters, expressions, files, environment variables) is not looked at.
    """
    for span in SPAN.findall(without_literals(text)):
        match = NAME.match(span)
        if match is None or FILE.fullmatch(span):
            continue
        (head, *attributes), rest = match[0].split("."), span[match.end() :]
        named = CLASS.fullmatch(head) and rest[:1] in ("", "(") and not re.search(rf"\b{head}\b", code)
        if head not in OURS and not named:
            continue
        try:
            value: object = importlib.import_module(head) if head in OURS else known()[head]
            for name in attributes:
                value = attribute(value, name)
        except (KeyError, ImportError):
            yield f"`{span}` is in none of rcpkg, rcbook, scikit-learn, pandas and this chapter"
            continue
        with suppress(SyntaxError, AttributeError):  # of what is no call
            keywords = [word.arg for word in ast.parse(f"f{rest}", mode="eval").body.keywords]
            try:
                inspect.signature(value).bind_partial(**dict.fromkeys(filter(None, keywords)))
            except (TypeError, ValueError) as error:
                yield from [f"`{span}`: {error}"] * bool(keywords)


def attribute(value: object, name: str) -> object:
    """That of an object, module or class, of a class also what its methods set; raises ImportError."""
    if hasattr(value, name):
        return getattr(value, name)
    for base in value.__mro__ if inspect.isclass(value) else ():
        with suppress(OSError, TypeError):
            if f"self.{name} =" in inspect.getsource(base):
                return None
    return importlib.import_module(f"{getattr(value, '__name__', '')}.{name}")


@cache
def known() -> dict[str, object]:
    """What Python, pandas and scikit-learn make public, and each class and function that we define in public."""
    names = {**vars(builtins), **vars(pd), **dict([*all_estimators(), *all_displays(), *all_functions()])}
    for package in map(importlib.import_module, OURS):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            public = vars(importlib.import_module(found.name)).items() if "._" not in found.name else ()
            ours = {n: v for n, v in public if str(getattr(v, "__module__", "")).startswith(OURS)}
            names |= {name: value for name, value in ours.items() if not name.startswith("_")}
    return names


def named_symbols(notebook: NotebookNode) -> Iterator[str]:
    return symbols(prose(notebook), "\n".join(cell.source for cell in code_cells(notebook)))


RULES: dict[str, Callable[[NotebookNode], Iterator[str]]] = {
    rule.__name__: rule for rule in (comparison, figures, tables, verdicts, size, named_symbols)
}
