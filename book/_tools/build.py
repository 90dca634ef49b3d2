"""Build the book's pages: all of them anew, or the one that was edited.

``python book/_tools/build.py`` builds all, in two processes, and says where they are; ``--page 05`` builds the page of
that chapter (or ``--page findings``) and leaves what its change moves elsewhere to the next whole build; ``--watch``
serves the pages, and builds again what is saved. The configuration is the ``conf.py`` that ``jupyter-book config
sphinx`` makes of ``_config.yml``. Once it is there, ``--plain`` builds the pages where Jupyter Book is not installed.
"""

import argparse
import contextlib
import os
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONF, SETTINGS = ROOT / "conf.py", ROOT / "_config.yml"
UNWATCHED = r"/(_build|\.venv[^/]*|\.git|\.\w+_cache|__pycache__)/"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", help="05 for chapter 5, or the name of another page's file: build that page only")
    parser.add_argument("--watch", action="store_true", help="serve the pages, and build again what is saved")
    parser.add_argument("--jobs", default="2", help="processes that read and write side by side")
    parser.add_argument("--plain", action="store_true", help="without Jupyter Book")
    parser.add_argument("--output", type=Path, default=ROOT / "_build", help="folder whose html/ is built")
    given = parser.parse_args()
    patterns = (f"chapters/{given.page}.ipynb", f"chapters/{given.page}_*.ipynb", f"book/**/{given.page}.*")
    files = [path for pattern in patterns for path in ROOT.glob(pattern) if path.suffix in (".ipynb", ".md")]
    if given.page and len(files) != 1:
        named = ", ".join(str(file.relative_to(ROOT)) for file in files) or "no page"
        parser.error(f"--page must name one page, such as 05 or findings; {given.page!r} names {named}")
    if not CONF.exists() or CONF.stat().st_mtime < SETTINGS.stat().st_mtime:
        from jupyter_book.cli.main import main as jupyter_book

        with contextlib.redirect_stdout(None):  # what it says of its file
            jupyter_book(["config", "sphinx", str(ROOT)], standalone_mode=False)
    html, options = given.output.resolve() / "html", ["-d", str(given.output.resolve() / ".doctrees"), "-q", "-n"]
    if given.plain:
        extensions = runpy.run_path(str(CONF))["extensions"]
        options += ["-D", f"extensions={','.join(name for name in extensions if name != 'jupyter_book')}"]
    command, started = [*options, "-W", "--keep-going"], time.monotonic()  # warnings are errors
    if given.watch:
        command = [*options, "--open-browser", "--re-ignore", UNWATCHED]
    elif given.page:
        print(f"Building {files[0].relative_to(ROOT).with_suffix('')} …", flush=True)
    else:
        print("Building every page from the stored outputs, in about a minute …", flush=True)
        shutil.rmtree(html, ignore_errors=True)
        command += ["-E", "-a", "-j", given.jobs]
    paths = [str(ROOT / "book" / "_ext"), str(ROOT / "book"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    module = "sphinx_autobuild" if given.watch else "sphinx"
    command = [sys.executable, "-m", module, *command, str(ROOT), str(html), *map(str, files)]
    failed = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}).returncode
    if not failed:
        page = files[0].relative_to(ROOT).with_suffix(".html") if given.page else "index.html"
        print(f"It is at {html / page} ({time.monotonic() - started:.0f} s)")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
