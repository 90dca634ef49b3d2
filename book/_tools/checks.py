"""The rules that every chapter keeps, each a function of a notebook that returns the violations it finds."""

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode
from rcbook.words import RAW, in_words

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 1_000_000
STATEMENTS = ("theorem", "proposition", "lemma", "corollary")
UNSEEN = {"hide-cell", "hide-output", "remove-cell", "remove-output"}
FOLDED = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
MOST_WORDS, MOST_TABLES = 4_500, 6  # in view: a chapter is read in one sitting
MOST_CODE = 250  # lines in view: chapters have fewer than 130, a page to copy from the most
LEAST_TEXT, PAGE = 9, 772  # pixels of text in figures, and of the text column of a page 1,300 wide
IGNORED = "nbval-ignore-output"  # of figures alone: nbval compares the digest of their numbers, which follows
UNCHECKED = {"nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"}  # of no cell
CHAPTER = "(ch-"  # opens a chapter
SUPPLEMENT = "(sup-"  # opens the page of what a specialist wants beside a chapter: chapters/NNs_the_same_subject.ipynb
AUDIT = "the published numbers"  # in the caption of the part of _toc.yml that takes the sources' tables apart
BANNED_CODE = {
    r"\bsys\.path\b": "changes sys.path; rcpkg is installed",
    r"^\s*[!%]\s*pip\b": "installs packages",
    r"\brcParams\b": "sets rcParams; rcbook.figures.use_style() has the style",
    r"NBVAL_|warnings\.(?:simplefilter|filterwarnings)": "switches a check off",
}
OPTIONS = r"(?P<options>(?:[ \t]*:[\w-]+:[^\n]*\n)*)"
BLOCK = re.compile(r"^[ \t]*(?::{3,}|`{3,})\{prf:(?P<kind>\w+)\}[^\n]*\n" + OPTIONS, re.MULTILINE)
EXERCISE = re.compile(r"\{exercise(?:-start)?\}[^\n]*\n" + OPTIONS)
SOLUTION = re.compile(r"\{solution(?:-start)?\}[ \t]+(?P<label>\S+)[ \t]*\n" + OPTIONS)
TEXT_TABLE = re.compile(
    r"^[ \t]*(?P<fence>:{3,}|`{3,})\{(?:list-)?table\}(?P<title>.*)\n(?P<body>(?:.*\n)*?)[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE,
)
LABEL = re.compile(r"^[ \t]*:label:[ \t]*(\S+)", re.MULTILINE)
FENCED = re.compile(r"^[ \t]*(`{3,})(\{?)[^\n]*\n.*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^[ \t]*<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
OURS = ("rcbook", "rcpkg")  # of a name in both, the library's counts
SPAN = re.compile(r"(?<![`}\\])`([^`\n]+)`(?!`)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
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


def execution(notebook: NotebookNode) -> list[str]:
    """Run, without an error and with nothing on stderr, and no cell is left out of the comparison."""
    problems = []
    for cell in code_cells(notebook):
        if cell.execution_count is None:
            problems.append(f"{cell.id}: was not run: make notebooks")
        problems += [f"{cell.id}: the tag {tag} switches a check off" for tag in sorted(UNCHECKED & set(tags(cell)))]
        for output in cell.outputs:
            if output.output_type == "error":
                problems.append(f"{cell.id}: raises {output.ename}")
            elif output.output_type == "stream" and output.name == "stderr":
                problems.append(f"{cell.id}: writes to stderr: {output.text[:80]!r}")
    return problems


def figures(notebook: NotebookNode) -> list[str]:
    """A figure is one vector graphic with a name, a caption and an alternative text; its digest is in the next cell.

    The picture is left out of the comparison of outputs, so its cell prints nothing else; the digest is compared, and
    is not on the page.
    """
    problems = []
    cells = code_cells(notebook)
    names = [name for cell in cells if (name := figure_name(cell))]
    problems += [f"two figures are named {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    for position, cell in enumerate(cells):
        drawn = any(mime.startswith("image/") for out in cell.outputs for mime in out.get("data", ()))
        options = cell.metadata.get("mystnb", {})
        if not drawn and "figure" not in options:
            if IGNORED in tags(cell):
                problems.append(f"{cell.id}: only the output of a figure may be left out of the comparison")
            continue
        if len(cell.outputs) != 1 or "image/svg+xml" not in cell.outputs[0].get("data", ()):
            problems.append(f"{cell.id}: a figure cell shows one figure, by rcbook.figures.show, and nothing else")
        missing = {"hide-input", IGNORED} - set(tags(cell))
        problems += [f"{cell.id}: figure without the tag {tag}" for tag in sorted(missing)]
        problems += [
            f"{cell.id}: text of {px:.1f} px; at least {LEAST_TEXT}" for px in text_sizes(cell) if px < LEAST_TEXT
        ]
        figure, image = options.get("figure", {}), options.get("image", {})
        if not str(figure.get("name", "")).startswith("fig-"):
            problems.append(f"{cell.id}: figure without a name fig-…")
        if len(figure.get("caption", "").split()) < 5:
            problems.append(f"{cell.id}: figure without a caption that can stand alone")
        if len(image.get("alt", "").split()) < 5:
            problems.append(f"{cell.id}: figure without an alternative text that says what is seen")
        follower = cells[position + 1] if position + 1 < len(cells) else None
        if follower is None or not is_digest(follower):
            problems.append(f"{cell.id}: the next code cell must print its digest and be tagged remove-cell")
        elif re.findall(r"\bshow\((\w+)", cell.source) != re.findall(r"\bdigest\((\w+)", follower.source):
            problems.append(f"{cell.id}: the next code cell must print the digest of this figure, not of another")
    return problems


def text_sizes(cell: NotebookNode) -> set[float]:
    """Sizes of the text in the drawings of a cell, in pixels on a page whose text is `PAGE` pixels wide."""
    drawings = [out.data["image/svg+xml"] for out in cell.outputs if "image/svg+xml" in out.get("data", ())]
    sizes = set()
    for drawing in drawings:
        if width := re.search(r'width="([\d.]+)pt"', drawing):
            points = {100 * float(scale) for scale in re.findall(r"scale\(([\d.]+) -\1\)", drawing)}
            sizes |= {size * min(4 / 3, PAGE / float(width[1])) for size in points}
    return sizes


def figure_name(cell: NotebookNode) -> str | None:
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name")


def is_digest(cell: NotebookNode) -> bool:
    printed = any(out.output_type == "stream" and out.text.strip() for out in cell.outputs)
    return tags(cell) == ["remove-cell"] and re.search(r"\bdigest\(", cell.source) is not None and printed


def tables(notebook: NotebookNode) -> list[str]:
    """A table in view has a label and a caption, whose numbers are numbers of its cell, and no raw names."""
    problems = [] if not (bare := bare_tables(notebook)) else [f"{bare} tables of the text without title and name"]
    names: list[str] = []
    for cell in code_cells(notebook):
        shown = [out.data["text/html"] for out in cell.outputs if "text/html" in out.get("data", ())]
        entries = as_list(cell.metadata.get("mystnb", {}).get("table", []))
        names += [entry.get("name", "") for entry in entries]
        if len(entries) != len(shown) and (entries or not UNSEEN & set(tags(cell))):
            problems.append(f"{cell.id}: {len(shown)} tables, {len(entries)} captions")
        below = code_below(cell, notebook) if shown else ""
        for html, entry in zip(shown, entries):
            text = re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
            elsewhere = r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$|(?:Tables?|§) ?[\d.]+(?:(?:,| and| to) §?[\d.]+)*"
            caption = re.sub(elsewhere, "", entry.get("caption", ""))
            if len(caption.split()) < 5:
                problems.append(f"{cell.id}: table without a caption that can stand alone")
            numbers = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", caption)
            for number in {n.rstrip(",") for n in numbers}:
                if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", f"{text} {cell.source} {below}"):
                    problems.append(f"{cell.id}: the caption's {number} is neither in the table nor in its code")
            problems += [f"{cell.id}: {raw} needs words in rcbook.words" for raw in RAW.findall(in_words(text))]
    problems += [f"table name {name!r} is not tab-…" for name in names if not name.startswith("tab-")]
    return problems + [f"two tables are named {name}" for name in sorted({n for n in names if names.count(n) > 1})]


def code_below(cell: NotebookNode, notebook: NotebookNode) -> str:
    """The functions of `rcbook.draw` and `rcbook.trials` that a cell calls by the name of their module, with what
    they use of that module."""
    modules = {}
    for node in (node for cell in code_cells(notebook) for node in ast.walk(ast.parse(plain_python(cell.source)))):
        if isinstance(node, ast.ImportFrom) and node.module in ("rcbook.draw", "rcbook.trials"):
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    wanted = re.findall(rf"\b({'|'.join(modules) or '-'})\.(\w+)\(", cell.source)
    found: dict[tuple[str, str], str] = {}
    while wanted:
        name = wanted.pop()
        value = vars(importlib.import_module(modules[name[0]])).get(name[1])
        if name not in found and value is not None:
            own = inspect.isfunction(value) and value.__module__ == modules[name[0]]
            found[name] = inspect.getsource(value) if own else f"{value!r}" if name[1].isupper() else ""
            wanted += [(name[0], used) for used in re.findall(r"\b[A-Za-z]\w+\b", found[name] if own else "")]
    return "\n".join(found.values())


def bare_tables(notebook: NotebookNode) -> int:
    """How many tables of the text, outside of folds, have no title or no name."""
    text = "\n".join(lines_outside_folds(notebook))
    for block in TEXT_TABLE.finditer(text):
        if block["title"].strip() and ":name: tab-" in block["body"]:
            text = text.replace(block[0], "")
    return len(re.findall(r"^[ \t]*\|[ :|-]+\|[ \t]*$", text, re.MULTILINE)) + text.count("{list-table}")


def statements(notebook: NotebookNode) -> list[str]:
    """A theorem has a label, a proof, and before the next theorem a cell tagged check:<label>."""
    problems = []
    unproved: str | None = None
    unchecked: str | None = None

    def close() -> None:
        if unproved is not None:
            problems.append(f"{unproved}: no proof before the next statement")
        if unchecked is not None:
            problems.append(f"{unchecked}: no cell tagged check:{unchecked} before the next statement")

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for block in BLOCK.finditer(cell.source):
                if block["kind"] == "proof":
                    unproved = None
                elif block["kind"] in STATEMENTS:
                    close()
                    label = LABEL.search(block["options"])
                    if label is None:
                        problems.append(f"{cell.id}: a {block['kind']} without a label")
                    unproved = unchecked = label and label[1]
        elif unchecked is not None and f"check:{unchecked}" in tags(cell):
            unchecked = None
    close()
    return problems


def verdicts(notebook: NotebookNode) -> list[str]:
    """The code of a check is folded; in view is the one line of `rcbook.checking.checked`, which asserts what it says.

    A check is tagged check:<label>, of a result, an exercise, a table, a figure or a section. Nothing else prints a
    verdict.
    """
    problems = []
    for cell in code_cells(notebook):
        found = [tag for tag in tags(cell) if tag.partition(":")[0] == "check"]
        code = ast.parse(plain_python(cell.source))
        calls = [node for node in ast.walk(code) if isinstance(node, ast.Call) and called(node) == "checked"]
        printed = "".join(out.get("text", "") for out in cell.outputs)
        if not found:
            if calls or "checked:" in printed:
                problems.append(f"{cell.id}: gives a verdict and is not tagged check:<label>")
            continue
        if len(found) > 1 or "hide-input" not in tags(cell):
            problems.append(f"{cell.id}: a check has one tag check:<label> and the tag hide-input")
        label = found[0].partition(":")[2]
        if label not in labels(notebook):
            problems.append(f"{cell.id}: tagged {found[0]}, but nothing here is labelled {label}")
        last = code.body[-1]
        if not (isinstance(last, ast.Expr) and calls == [last.value]):
            problems.append(f"{cell.id}: a check calls checked(…) once, in its last line")
        if not re.fullmatch(r"checked: .+\n", printed) or len(cell.outputs) != 1:
            problems.append(f"{cell.id}: a check prints the verdict of checked(…) and nothing else")
    return problems


def called(node: ast.Call) -> str:
    """Last part of the name of what is called."""
    return ast.unparse(node.func).split(".")[-1]


def plain_python(source: str) -> str:
    """The source without the lines that only IPython understands."""
    return re.sub(r"^[ \t]*[%!].*$", "", source, flags=re.MULTILINE)


def labels(notebook: NotebookNode) -> set[str]:
    """Labels of blocks and sections in the text, and names of the figures and tables of cells."""
    text = prose(notebook)
    made = [cell.metadata.get("mystnb", {}) for cell in code_cells(notebook)]
    shown = [entry for options in made for kind in ("figure", "table") for entry in as_list(options.get(kind, []))]
    found = {*LABEL.findall(text), *re.findall(r"^\(([\w:-]+)\)=", text, re.MULTILINE)}
    return found | {*re.findall(r"^[ \t]*:name:[ \t]*(\S+)", text, re.MULTILINE)} | {e.get("name", "") for e in shown}


def as_list(entries: dict | list[dict]) -> list[dict]:
    return entries if isinstance(entries, list) else [entries]


def shape(notebook: NotebookNode) -> list[str]:
    """A chapter opens with label and title, poses 3 to 8 exercises with folded solutions, ends with a take-away.

    A supplement has label and title, and no need of a take-away; exercises may stand there in place of the chapter.
    """
    problems = []
    text = prose(notebook)
    beside = notebook.cells[0].source.startswith(SUPPLEMENT)
    if not re.match(r"\((ch|sup)-[\w-]+\)=\n# \S", notebook.cells[0].source):
        problems.append("the first cell must open with (ch-…)= or (sup-…)= and the title")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    if not beside and not (headings and headings[-1].startswith("Take-away")):
        problems.append("the last section must be '## Take-away'")
    exercises = [label[1] if (label := LABEL.search(e["options"])) else "" for e in EXERCISE.finditer(text)]
    solutions = {solution["label"]: solution["options"] for solution in SOLUTION.finditer(text)}
    elsewhere = beside or of_tables(notebook) or "-exercises`" in text  # a link to those of the supplement
    if not 3 <= len(exercises) <= 8 and (exercises or not elsewhere):
        problems.append(f"{len(exercises)} exercises; a chapter has 3 to 8")
    if set(exercises) != set(solutions):
        problems.append("exercises and solutions do not match by label")
    problems += [f"the solution of {label} is not folded" for label, o in solutions.items() if "dropdown" not in o]
    for cell in code_cells(notebook):
        for pattern, why in BANNED_CODE.items():
            if re.search(pattern, cell.source, re.MULTILINE):
                problems.append(f"{cell.id}: {why}")
    return problems


def of_tables(notebook: NotebookNode) -> bool:
    """Whether the chapter takes the sources' tables apart, where there is nothing to exercise."""
    return notebook.cells[0].source.split("\n")[0] in _first_lines_of_tables()


@cache
def _first_lines_of_tables() -> set[str]:
    """The labels of the chapters of that part, as they open them."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    files = [chapter["file"] for part in parts if AUDIT in part["caption"] for chapter in part["chapters"]]
    notebooks = [nbformat.read(ROOT / f"{file}.ipynb", as_version=4) for file in files]
    return {notebook.cells[0].source.split("\n")[0] for notebook in notebooks}


def size(notebook: NotebookNode) -> list[str]:
    """A chapter has one subject: folded proofs and code are not counted; solutions, with their labs, are.

    Supplements and pages of instructions have as many tables as they need.
    """
    counted = [(words_in_view, MOST_WORDS, "words"), (lines_in_view, MOST_CODE, "lines of code")]
    if notebook.cells[0].source.startswith(CHAPTER):
        counted.append((tables_in_view, MOST_TABLES, "tables"))
    limits = [(count(notebook), most, what) for count, most, what in counted]
    return [f"{number} {what} in view; at most {most:g}" for number, most, what in limits if number > most]


def words_in_view(notebook: NotebookNode) -> int:
    """Words of text and captions without dropdowns, directives, labels and options; a formula is as long as it is."""
    aside = re.compile(r"[ \t]*(?::{3,}|`{3,}|:[\w-]+:)|\([\w:-]+\)=$")
    text = [line for line in lines_outside_folds(notebook) if not aside.match(line)]
    captions = [entry.get("caption", "") for kind in ("figure", "table") for entry in entries_in_view(notebook, kind)]
    return sum(len(line.split()) for line in text + captions)


def entries_in_view(notebook: NotebookNode, kind: str) -> list[dict]:
    """What the metadata of cells whose output is not folded say of their figures or tables."""
    cells = (cell for cell in code_cells(notebook) if not UNSEEN & set(tags(cell)))
    return [entry for cell in cells for entry in as_list(cell.metadata.get("mystnb", {}).get(kind, []))]


def lines_outside_folds(notebook: NotebookNode) -> Iterator[str]:
    """Lines of the text cells without dropdowns; solutions are in view before a script folds them, and on paper."""
    closing = None
    for line in prose(notebook).splitlines():
        fence = re.match(r"[ \t]*(:{3,}|`{3,})(\{[\w:-]+\})?", line)
        if closing is not None:
            closing = None if fence and line.strip() == closing else closing
        elif fence and fence[2] == "{dropdown}":
            closing = fence[1]
        else:
            yield line


def lines_in_view(notebook: NotebookNode) -> int:
    seen = (cell for cell in code_cells(notebook) if not FOLDED & set(tags(cell)))
    return sum(len(cell.source.splitlines()) for cell in seen)


def tables_in_view(notebook: NotebookNode) -> int:
    """Tables of cells whose output is shown, and tables of the text outside of folds."""
    text = "\n".join(lines_outside_folds(notebook))
    written = len(re.findall(r"^[ \t]*\|[ :|-]+\|[ \t]*$", text, re.MULTILINE)) + text.count("{list-table}")
    return len(entries_in_view(notebook, "table")) + written


def results_in_view(notebook: NotebookNode) -> int:
    """Theorems and their kind outside of folds."""
    text = "\n".join(lines_outside_folds(notebook))
    return sum(block["kind"] in STATEMENTS for block in BLOCK.finditer(text + "\n"))


def symbols(text: str, also_known: frozenset[str] = frozenset()) -> list[str]:
    """Every public symbol named in prose exists.

    The convention: inline code that begins with ``rcpkg.`` or ``rcbook.`` is a dotted path that must resolve.
    Inline code that is a capitalised name, alone or with a call or an attribute (``QDA``,
    ``QDA(prior_strength=1)``, ``QDA.fit``), must be defined in a module of ours or a name of scikit-learn, pandas,
    Python or the chapter's own code; attributes and keywords of ours must exist too. Other inline code
    (parameters, expressions, files, environment variables) is not looked at.
    """
    problems = []
    for span in SPAN.findall(without_literals(text)):
        match = NAME.match(span)
        if match is None or FILE.fullmatch(span):
            continue
        path, rest = match[0], span[match.end() :]
        head = path.split(".")[0]
        if head in OURS:
            found, value = resolve(path)
        elif re.fullmatch(r"[A-Z]\w*[a-z]\w*|[A-Z]{2,}\w*", head) and (rest == "" or rest.startswith("(")):
            if head in also_known:
                continue
            if head not in own_modules():
                if foreign(head) is None:
                    problems.append(f"`{span}`: no {head} in rcpkg, scikit-learn, pandas or this chapter")
                continue
            found, value = resolve(f"{own_modules()[head]}.{path}")
        else:
            continue
        if not found:
            problems.append(f"`{span}` does not exist")
        elif rest.startswith("("):
            problems += [f"`{span}`: {problem}" for problem in call_problems(value, rest)]
    return problems


def resolve(path: str) -> tuple[bool, object]:
    """Whether a dotted path that starts with a module leads somewhere (attributes set in methods count), and where."""
    parts = path.split(".")
    value: object = importlib.import_module(parts[0])
    for position, part in enumerate(parts[1:], start=1):
        if hasattr(value, part):
            value = getattr(value, part)
        elif inspect.ismodule(value):
            try:
                value = importlib.import_module(".".join(parts[: position + 1]))
            except ImportError:
                return False, None
        elif inspect.isclass(value) and any(f"self.{part} =" in source(base) for base in value.__mro__):
            value = None
        else:
            return False, None
    return True, value


def source(value: type) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return ""


def call_problems(function: object, call: str) -> Iterator[str]:
    """Keywords of a call, as written in prose, that the function does not have."""
    try:
        node = ast.parse("f" + call, mode="eval").body
        parameters = inspect.signature(function).parameters if callable(function) else {}
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.Call) and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in parameters:
                yield f"no parameter {keyword.arg}"


@cache
def own_modules() -> dict[str, str]:
    """The module of each class and function that we define, private modules and names left out."""
    packages = [importlib.import_module(name) for name in OURS]
    names = [
        m.name for p in packages for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.") if "._" not in m.name
    ]
    modules = [importlib.import_module(name) for name in names]
    return {
        name: module.__name__
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith(OURS)
    }


def foreign(name: str) -> object | None:
    """The object of that name in Python, pandas or scikit-learn."""
    if hasattr(builtins, name):
        return getattr(builtins, name)
    pandas = importlib.import_module("pandas")
    return getattr(pandas, name, None) or sklearn_names().get(name)


@cache
def sklearn_names() -> dict[str, object]:
    from sklearn.utils.discovery import all_displays, all_estimators, all_functions

    return dict([*all_estimators(), *all_displays(), *all_functions()])


def own_names(notebook: NotebookNode) -> frozenset[str]:
    """Names that the chapter's code defines or imports."""
    names: set[str] = set()
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(plain_python(cell.source))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.alias):
                names.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return frozenset(names)


def named_symbols(notebook: NotebookNode) -> list[str]:
    return symbols(prose(notebook), own_names(notebook))


RULES: dict[str, Callable[[NotebookNode], list[str]]] = {
    rule.__name__: rule for rule in (execution, figures, tables, statements, verdicts, shape, size, named_symbols)
}
