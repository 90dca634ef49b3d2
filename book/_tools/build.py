"""Build the book's pages: all of them anew, or the one that was edited.

``python book/_tools/build.py`` builds all, in two processes, and says where they are; ``--page 05`` builds the page of
that chapter (or ``--page findings``) and leaves what its change moves elsewhere to the next whole build; ``--watch``
serves the pages, and builds again what is saved.

The configuration is what ``jupyter-book config sphinx`` makes of ``_config.yml``, written to ``_build/conf/conf.py``.
With ``--plain`` it names nothing of Jupyter Book, and once ``--configure`` has written it the pages are built where
Jupyter Book is not installed; ``--compare`` says which pages have other words than those of another build.
"""

import argparse
import shutil
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / "book" / "_ext"), str(ROOT / "book"), str(ROOT)]
UNWATCHED = r"/(_build|\.venv[^/]*|\.git|\.\w+_cache|__pycache__)/"
OF_JUPYTER_BOOK = ("jupyter_book", "sphinx_jupyterbook_latex")
VALUES_OF_JUPYTER_BOOK = ("comments_config", "use_jupyterbook_latex")


def configure(build: Path, plain: bool = False) -> Path:
    """Write ``conf.py``, where it is older than what it is made from; the folder that it is in."""
    folder = build / ("conf_plain" if plain else "conf")
    file, sources = folder / "conf.py", (ROOT / "_config.yml", Path(__file__))
    if file.exists() and file.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return folder
    from jupyter_book.config import get_final_config

    config, _ = get_final_config(
        user_yaml=ROOT / "_config.yml", sourcedir=ROOT, cli_config={"latex_individualpages": False}
    )
    for name in ("html_static_path", "bibtex_bibfiles"):
        config[name] = [str(ROOT / path) for path in config[name]]
    config["html_favicon"] = str(ROOT / config["html_favicon"])
    if plain:
        config["extensions"] = [name for name in config["extensions"] if name not in OF_JUPYTER_BOOK]
        config = {name: value for name, value in config.items() if name not in VALUES_OF_JUPYTER_BOOK}
    lines = [f"import sys\nsys.path[:0] = {PATHS!r}"]
    lines += [f"{name} = {value!r}" for name, value in sorted(config.items())]
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sources_of(page: str) -> list[Path]:
    """The files of a page: ``05`` is chapter 5, ``05s`` its supplement, other pages go by the name of their file."""
    patterns = (f"chapters/{page}.ipynb", f"chapters/{page}_*.ipynb", f"book/**/{page}.*")
    found = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return [path for path in found if path.suffix in (".ipynb", ".md")]


def sphinx(build: Path, options: list[str], files: list[Path], *, plain: bool = False, jobs: int = 1) -> int:
    """Build into the folder; warnings are errors."""
    from sphinx.cmd.build import build_main

    strict = ["-W", "-n", "--keep-going", "-q", "-j", str(jobs)]
    folders = ["-c", str(configure(build, plain)), "-d", str(build / ".doctrees")]
    return build_main([*folders, *strict, *options, str(ROOT), str(build / "html"), *map(str, files)])


def words(page: Path) -> str:
    """What a page says."""
    from bs4 import BeautifulSoup

    return " ".join(BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").get_text(" ").split())


def compare(build: Path, other: Path) -> int:
    """Name the pages that two builds have not in common or that have other words; how many."""
    pages = {path.relative_to(folder / "html") for folder in (build, other) for path in folder.glob("html/**/*.html")}
    differ = []
    for page in sorted(pages):
        ours, theirs = (words(file) if (file := folder / "html" / page).exists() else "" for folder in (build, other))
        differ += [str(page)] if ours != theirs else []
    print(f"{len(differ)} of {len(pages)} pages differ", *differ, sep="\n")
    return len(differ)


def watch(build: Path) -> int:
    """Serve the pages, build again what is saved, and let the browser load it anew."""
    from sphinx_autobuild.__main__ import main as serve

    folders = ["-c", str(configure(build)), "-d", str(build / ".doctrees")]
    serve([*folders, "-q", "-n", "--open-browser", "--re-ignore", UNWATCHED, str(ROOT), str(build / "html")])
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", help="05 for chapter 5, or the name of another page's file: build that page only")
    parser.add_argument("--watch", action="store_true", help="serve the pages, and build again what is saved")
    parser.add_argument("--jobs", type=int, default=2, help="processes that read and write side by side")
    parser.add_argument("--plain", action="store_true", help="without Jupyter Book")
    parser.add_argument("--configure", action="store_true", help="only write the configuration")
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with the pages in its html/")
    parser.add_argument("--output", type=Path, default=ROOT / "_build", help="folder whose html/ is built")
    arguments = parser.parse_args()
    build, files = arguments.output.resolve(), sources_of(arguments.page) if arguments.page else []
    if arguments.page and len(files) != 1:
        named = ", ".join(str(file.relative_to(ROOT)) for file in files) or "no page"
        parser.error(f"--page must name one page, such as 05 or findings; {arguments.page!r} names {named}")
    started = time.monotonic()
    if arguments.configure:
        configure(build, arguments.plain)
        return 0
    if arguments.compare:
        return compare(build, arguments.compare)
    if arguments.watch:
        return watch(build)
    if files:
        target = files[0].relative_to(ROOT).with_suffix(".html")
        print(f"Building {target.with_suffix('')} …", flush=True)
        failed = sphinx(build, [], files)
    else:
        target = Path("index.html")
        print("Building every page from the stored outputs, in about a minute …", flush=True)
        shutil.rmtree(build / "html", ignore_errors=True)
        failed = sphinx(build, ["-E", "-a"], [], plain=arguments.plain, jobs=arguments.jobs)
    if not failed:
        print(f"It is at {build / 'html' / target} ({time.monotonic() - started:.0f} s)")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
