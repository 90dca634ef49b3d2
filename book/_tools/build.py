"""Build the book's pages: all of them anew, or the one that was edited.

``python book/_tools/build.py`` builds all, in two processes, and says where they are; ``--page 05`` builds the page of
that chapter (or ``--page findings``) and leaves what its change moves elsewhere to the next whole build; ``--watch``
serves the pages, and builds again what is saved.

The configuration is what ``jupyter-book config sphinx`` makes of ``_config.yml``, written to ``_build/conf/conf.py``.
Once it is there, ``--plain`` builds the pages where Jupyter Book is not installed; ``--compare`` says which pages have
other words than those of another build.
"""

import argparse
import shutil
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / "book" / "_ext"), str(ROOT / "book"), str(ROOT)]
UNWATCHED = r"/(_build|\.venv[^/]*|\.git|\.\w+_cache|__pycache__)/"
PLAIN = """exec(open({conf!r}, encoding="utf-8").read())
extensions = [name for name in extensions if name not in ("jupyter_book", "sphinx_jupyterbook_latex")]
del comments_config, use_jupyterbook_latex
"""


def configure(build: Path, plain: bool) -> Path:
    """Write ``conf.py``, where it is older than what it is made from; the folder that it is in."""
    file, sources = build / "conf" / "conf.py", (ROOT / "_config.yml", Path(__file__))
    file.parent.mkdir(parents=True, exist_ok=True)
    if plain:
        file.write_text(PLAIN.format(conf=str(ROOT / "_build" / "conf" / "conf.py")), encoding="utf-8")
    elif not file.exists() or file.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        from jupyter_book.config import get_final_config

        settings = {"latex_individualpages": False}
        config, _ = get_final_config(user_yaml=sources[0], sourcedir=ROOT, cli_config=settings)
        for name in ("html_static_path", "bibtex_bibfiles"):
            config[name] = [str(ROOT / path) for path in config[name]]
        config["html_favicon"] = str(ROOT / config["html_favicon"])
        lines = [f"import sys\nsys.path[:0] = {PATHS!r}"]
        lines += [f"{name} = {value!r}" for name, value in sorted(config.items())]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file.parent


def sources_of(page: str) -> list[Path]:
    """The files of a page: ``05`` is chapter 5, ``05s`` its supplement, other pages go by the name of their file."""
    patterns = (f"chapters/{page}.ipynb", f"chapters/{page}_*.ipynb", f"book/**/{page}.*")
    found = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return [path for path in found if path.suffix in (".ipynb", ".md")]


def words(build: Path) -> dict[Path, str]:
    """What each page says."""
    from bs4 import BeautifulSoup

    pages = {path.relative_to(build): path.read_text(encoding="utf-8") for path in build.glob("html/**/*.html")}
    return {name: " ".join(BeautifulSoup(page, "html.parser").get_text(" ").split()) for name, page in pages.items()}


def compare(build: Path, other: Path) -> int:
    """Name the pages that two builds have not in common or that have other words; how many."""
    ours, theirs = words(build), words(other)
    differ = [str(page) for page in sorted({*ours, *theirs}) if ours.get(page) != theirs.get(page)]
    print(f"{len(differ)} of {len({*ours, *theirs})} pages differ", *differ, sep="\n")
    return len(differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", help="05 for chapter 5, or the name of another page's file: build that page only")
    parser.add_argument("--watch", action="store_true", help="serve the pages, and build again what is saved")
    parser.add_argument("--jobs", type=int, default=2, help="processes that read and write side by side")
    parser.add_argument("--plain", action="store_true", help="without Jupyter Book")
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with the pages in its html/")
    parser.add_argument("--output", type=Path, default=ROOT / "_build", help="folder whose html/ is built")
    arguments = parser.parse_args()
    build, files = arguments.output.resolve(), sources_of(arguments.page) if arguments.page else []
    if arguments.page and len(files) != 1:
        named = ", ".join(str(file.relative_to(ROOT)) for file in files) or "no page"
        parser.error(f"--page must name one page, such as 05 or findings; {arguments.page!r} names {named}")
    if arguments.compare:
        return compare(build, arguments.compare)
    started, html = time.monotonic(), str(build / "html")
    options = ["-c", str(configure(build, arguments.plain)), "-d", str(build / ".doctrees"), "-q", "-n"]
    if arguments.watch:
        from sphinx_autobuild.__main__ import main as serve

        serve([*options, "--open-browser", "--re-ignore", UNWATCHED, str(ROOT), html])
        return 0
    from sphinx.cmd.build import build_main

    target = files[0].relative_to(ROOT).with_suffix(".html") if files else Path("index.html")
    options += ["-W", "--keep-going"]  # warnings are errors
    if files:
        print(f"Building {target.with_suffix('')} …", flush=True)
    else:
        print("Building every page from the stored outputs, in about a minute …", flush=True)
        shutil.rmtree(html, ignore_errors=True)
        options += ["-E", "-a", "-j", str(arguments.jobs)]
    failed = build_main([*options, str(ROOT), html, *map(str, files)])
    if not failed:
        print(f"It is at {Path(html, target)} ({time.monotonic() - started:.0f} s)")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
