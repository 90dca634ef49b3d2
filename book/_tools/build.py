"""Build the book's pages: all of them anew, or the one that was edited.

``python book/_tools/build.py`` builds all, in two processes, and says where they are; ``--page 05`` builds the page of
that chapter (or ``--page findings``) and what its change moves elsewhere is left for the next whole build. The
configuration is what ``jupyter-book config sphinx`` makes of ``_config.yml``, written to ``_build/conf/conf.py``; with
``--plain`` it names nothing of Jupyter Book.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "book" / "_ext"
OF_JUPYTER_BOOK = ("jupyter_book", "sphinx_jupyterbook_latex")


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
        config.pop("comments_config", None), config.pop("use_jupyterbook_latex", None)
    lines = [f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})"]
    lines += [f"{name} = {value!r}" for name, value in sorted(config.items())]
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sources_of(page: str) -> list[Path]:
    """The files of a page: ``05`` is chapter 5, other pages go by the name of their file."""
    found = [path for pattern in (f"chapters/{page}*.ipynb", f"book/**/{page}.*") for path in ROOT.glob(pattern)]
    return [path for path in found if path.suffix in (".ipynb", ".md")]


def sphinx(build: Path, options: list[str], files: list[Path], *, plain: bool = False, jobs: int = 1) -> int:
    """Build into the folder; warnings are errors."""
    from sphinx.cmd.build import build_main

    sys.path[:0] = [str(ROOT), str(ROOT / "book")]
    strict = ["-W", "-n", "--keep-going", "-q", "-j", str(jobs)]
    folders = ["-c", str(configure(build, plain)), "-d", str(build / ".doctrees")]
    return build_main([*folders, *strict, *options, str(ROOT), str(build / "html"), *map(str, files)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", help="05 for chapter 5, or the name of another page's file: build that page only")
    parser.add_argument("--jobs", type=int, default=2, help="processes that read and write side by side")
    parser.add_argument("--plain", action="store_true", help="without Jupyter Book")
    parser.add_argument("--output", type=Path, default=ROOT / "_build", help="folder whose html/ is built")
    arguments = parser.parse_args()
    build, files = arguments.output.resolve(), sources_of(arguments.page) if arguments.page else []
    if arguments.page and len(files) != 1:
        named = ", ".join(str(file.relative_to(ROOT)) for file in files) or "no page"
        parser.error(f"--page must name one page, such as 05 or findings; {arguments.page!r} names {named}")
    started = time.monotonic()
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
