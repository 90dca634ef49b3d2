"""What this book adds to Sphinx: execution on demand, numbers of the chapters, MathJax from disk."""

import os
import re
import shutil
from importlib.metadata import files
from pathlib import Path

from docutils import nodes
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

CHAPTER = re.compile(r"chapters/(\d\d)_")
MATHJAX = re.compile(r"/mathjax/(tex-chtml\.js|(input/tex/extensions|output/chtml/fonts)/.+|ui/(menu|safe|lazy)\.js)$")


def execute_on_demand(app: Sphinx, config) -> None:
    """Run every chapter when the environment variable EXECUTE is set, whatever _config.yml says.

    They run side by side, each in a fresh kernel, before Sphinx reads them one after the other; it takes the outputs
    from the cache, and runs again, to report it, a chapter that failed.
    """
    if os.environ.get("EXECUTE"):
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


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Copy what MathJax needs for TeX to HTML (a tenth of it) out of the package sphinx-mathjax-offline."""
    if exception is None and app.builder.format == "html":
        for file in files("sphinx-mathjax-offline"):
            if MATHJAX.search(file.as_posix()):
                target = Path(app.outdir, "_static", file.as_posix().split("/static/")[1])
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)


usual_section_numbers = TocTreeCollectorWithStyles.assign_section_numbers


def setup(app: Sphinx) -> dict[str, bool]:
    TocTreeCollectorWithStyles.assign_section_numbers = assign_section_numbers
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    # Jupyter Book always sets this value of sphinx_comments, which we leave out
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", execute_on_demand)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
