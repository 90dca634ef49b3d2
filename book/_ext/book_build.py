"""What this book adds to Sphinx: execution on demand, numbers of the chapters, outlines of pages, MathJax from disk,
the labels of the bibliography ("Pérez et al. [2025]", as the text cites them), and buttons to the repository.

Sphinx reads the whole stored tree of a page for each reference to one of its figures or theorems, and the trees of all
pages whenever it numbers the figures. Both need only what has an identifier: this *outline* of a page is kept in the
environment from when the page is read.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib.metadata import files
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pybtex.plugin
from docutils import nodes
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from rcbook import citation
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles
from sphinx_proof.domain import ProofDomain

CHAPTER = re.compile(r"chapters/(\d\d)_")
MATHJAX = re.compile(r"/mathjax/(tex-chtml\.js|(input/tex/extensions|output/chtml/fonts)/.+|ui/(menu|safe|lazy)\.js)$")


def execute_on_demand(app: Sphinx, config) -> None:
    """Run every chapter when the environment variable EXECUTE is set, whatever _config.yml says.

    They run side by side, each in a fresh kernel, before Sphinx reads them one after the other; it takes the outputs
    from the cache, and runs again, to report it, a chapter that failed.
    """
    if os.environ.get("EXECUTE"):
        from jupyter_cache import get_cache
        from jupyter_cache.executors import load_executor

        executed = Path(app.outdir).parent / "executed"
        shutil.rmtree(executed, ignore_errors=True)
        cache = get_cache(executed)
        for notebook in sorted([*Path(app.srcdir).glob("chapters/*.ipynb"), *Path(app.srcdir).glob("book/*.ipynb")]):
            cache.add_nb_to_project(str(notebook))
        load_executor("local-parallel", cache).run_and_cache(timeout=config.nb_execution_timeout)
        config.nb_execution_mode, config.nb_execution_cache_path = "cache", str(executed)


def chapter_numbers(env: BuildEnvironment) -> dict[str, int]:
    """The number of each chapter, by its file name, and of the pages that stand below it."""
    chapters = {docname: int(match[1]) for docname in env.toc_secnumbers if (match := CHAPTER.match(docname))}
    below = {page: number for docname, number in chapters.items() for page in env.toctree_includes.get(docname, ())}
    return chapters | below


def assign_section_numbers(self: TocTreeCollectorWithStyles, env: BuildEnvironment) -> list[str]:
    """Number a chapter by its file name, so that ``04_…`` is chapter 4 before chapters 1 to 3 are written."""
    rewritten = usual_section_numbers(self, env)
    for docname, chapter in chapter_numbers(env).items():
        numbers = env.toc_secnumbers[docname]
        env.toc_secnumbers[docname] = {a: (chapter, *n[1:]) for a, n in numbers.items()}
        for node in (env.titles[docname], *env.tocs[docname].findall(nodes.reference)):
            if node.get("secnumber"):
                node["secnumber"] = [chapter, *node["secnumber"][1:]]
    return rewritten


class Outline(nodes.Element):
    """What a page's tree has that is numbered or referred to, in its order, and ``ids`` like a document."""

    ids: dict[str, nodes.Element]


def outline_of(doctree: nodes.document) -> Outline:
    """Sections, contents, and elements with an identifier; of these the title or caption, too."""
    copies: dict[int, nodes.Element] = {}

    def pruned(node: nodes.Element) -> nodes.Element | None:
        kept = []
        for child in node.children:
            if isinstance(child, nodes.title | nodes.caption | nodes.literal_block) and not child["ids"]:
                kept += [child.deepcopy()] if node["ids"] else []
            elif isinstance(child, nodes.Element) and (inside := pruned(child)) is not None:
                kept.append(inside)
        if not (kept or node["ids"] or isinstance(node, nodes.section | addnodes.toctree)):
            return None
        copies[id(node)] = copied = node.copy()
        copied.extend(kept)
        return copied

    outline = Outline("", *filter(None, map(pruned, doctree.children)))
    outline.ids = {name: copies.setdefault(id(node), without_page(node.copy())) for name, node in doctree.ids.items()}
    return without_page(outline)


def keep_outline(app: Sphinx, doctree: nodes.document) -> None:
    """Of the page just read; and let the register of exercises keep their titles only: nothing asks it for more."""
    outlines(app.env)[app.env.docname] = outline_of(doctree)
    for exercise in getattr(app.env, "sphinx_exercise_registry", {}).values():
        node = exercise["node"]
        if len(node.children) > 1:
            exercise["node"] = without_page(node.copy())
            exercise["node"] += without_page(node[0].deepcopy())


def without_page(node: nodes.Element) -> nodes.Element:
    """The node, no longer tied to the tree of its page."""
    for part in node.findall():
        part.document = None
    return node


def outlines(env: BuildEnvironment) -> dict[str, Outline]:
    """Those of all pages that were read."""
    if not hasattr(env, "book_outlines"):
        env.book_outlines = {}
    return env.book_outlines


def purge_outline(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    outlines(env).pop(docname, None)


def merge_outlines(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    outlines(env).update({docname: outlines(other)[docname] for docname in docnames})


def by_outlines(method: Callable) -> Callable:
    """A method that is given the environment first, and outlines where it asks for trees."""

    @wraps(method)
    def called(self: object, env: BuildEnvironment, *arguments: object) -> object:
        with trees_are_outlines(env):
            return method(self, env, *arguments)

    return called


@contextmanager
def trees_are_outlines(env: BuildEnvironment) -> Iterator[None]:
    if "get_doctree" in vars(env):  # one within another
        yield
        return
    env.get_doctree = outlines(env).__getitem__
    try:
        yield
    finally:
        del env.get_doctree


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Copy what MathJax needs for TeX to HTML (a tenth of it) out of the package sphinx-mathjax-offline."""
    if exception is None and app.builder.format == "html":
        for file in files("sphinx-mathjax-offline"):
            if MATHJAX.search(file.as_posix()):
                target = Path(app.outdir, "_static", file.as_posix().split("/static/")[1])
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)


usual_section_numbers = TocTreeCollectorWithStyles.assign_section_numbers
usual_figure_numbers = TocTreeCollectorWithStyles.assign_figure_numbers
usual_numref = StandardDomain._resolve_numref_xref
usual_entry_point = pybtex.plugin._load_entry_point


class AuthorYearLabels(BaseLabelStyle):
    """``Pérez et al., 2025``; entries with the same get a letter."""

    def format_labels(self, sorted_entries: list[Entry]) -> Iterator[str]:
        labels = [label(entry) for entry in sorted_entries]
        for position, found in enumerate(labels):
            alike = labels[:position].count(found)
            yield found + (ascii_lowercase[alike] if labels.count(found) > 1 else "")


def label(entry: Entry) -> str:
    """Last names of one or two authors, of more the first only; and the year."""
    people = entry.persons.get("author") or entry.persons["editor"]
    names = [" ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in people]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {entry.fields['year']}"


class AuthorYearStyle(PlainStyle):
    default_label_style = AuthorYearLabels


BINDER = "https://mybinder.org"


def repository_options(entry: dict[str, Any]) -> dict[str, Any]:
    """Options of the theme for a repository: its buttons, and a launch of the version that the page is of."""
    if "repository-code" not in entry:
        return {}
    return {
        "repository_url": entry["repository-code"].rstrip("/"),
        "repository_branch": f"v{entry['version']}",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
    }


def add_repository_buttons(app: Sphinx, config: Config) -> None:
    """Give the theme what it needs for the buttons."""
    config.html_theme_options = {**config.html_theme_options, **repository_options(citation.citation())}


def setup(app: Sphinx) -> dict[str, bool]:
    TocTreeCollectorWithStyles.assign_section_numbers = by_outlines(assign_section_numbers)
    TocTreeCollectorWithStyles.assign_figure_numbers = by_outlines(usual_figure_numbers)
    StandardDomain._resolve_numref_xref = by_outlines(usual_numref)
    pybtex.plugin._load_entry_point = cache(usual_entry_point)  # else each citation searches all packages
    app.connect("doctree-read", keep_outline, priority=900)
    app.connect("env-purge-doc", purge_outline)
    app.connect("env-merge-info", merge_outlines)
    # pages can be read side by side: the one works after that, the other keeps nothing in its domain
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    ProofDomain.merge_domaindata = lambda *_: None
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    # Jupyter Book always sets this value of sphinx_comments, which we leave out
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", execute_on_demand)
    app.connect("build-finished", copy_mathjax)
    register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)
    app.connect("config-inited", add_repository_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
