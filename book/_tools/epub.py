"""The book as an EPUB, made by pandoc from the built pages, formulas as MathML::

    make book && make epub

The order of pages is that of ``_toc.yml``. As on paper, proofs and solutions are open, a check is its verdict
in a line, code that draws or checks is left out, a picture that moves is the caption that names its still, and the
scorecard is its counts. ``epubcheck`` finds no error in it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "_build" / "html"
EPUB = ROOT / "_build" / "epub" / "book.epub"
GONE = (
    "a.headerlink, script, style, button, noscript, form, nav, svg, details.hide, details.admonition.hide, "
    ".scorecard-rows, .viewcode-link, .sd-summary-state-marker, figure.moving > :not(figcaption)"
)
KEEPING = {"h1", "h2", "h3", "h4", "h5", "h6", "div", "span", "table"}  # elements whose id pandoc keeps
SIZED = re.compile(r"\\[bB]igg?[lrm]?(?![A-Za-z])")  # sizes of delimiters, for which MathML has no valid form
STYLE = """
body { line-height: 1.4; }
figure { margin: 1em 0; }
img { max-width: 100%; }
figcaption, caption { font-size: 0.9em; text-align: left; }
table { border-collapse: collapse; font-size: 0.8em; margin: 1em 0; }
th, td { padding: 0.1em 0.5em; text-align: left; }
thead { border-bottom: 1px solid; }
td.number, th.number { text-align: right; }
pre { font-size: 0.8em; white-space: pre-wrap; }
div.proof, div.admonition { border-left: 0.2em solid; padding-left: 0.8em; margin: 1em 0; }
td p, th p { margin: 0; }
div.verdict { font-size: 0.8em; margin: 1em 0; }
"""


def order() -> list[str]:
    """The pages, from the first to the last."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(page for part in toc["parts"] for page in listed(part["chapters"]))]


def listed(entries: list[dict]) -> Iterator[str]:
    """Pages of the table of contents, those below a page after it."""
    for entry in entries:
        yield entry["file"]
        yield from listed(entry.get("sections", []))


def slug(page: str) -> str:
    """Identifier of a page in the one document that pandoc reads."""
    return page.replace("/", "-")


def article(page: str, pages: set[str], images: Path) -> Tag:
    """The text of a page, as a section of the one document."""
    soup = BeautifulSoup((PAGES / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    body = soup.select_one("article.bd-article > section")
    for element in body.select(GONE):
        element.decompose()
    for check in body.select("details.check"):
        verdict = soup.new_tag("div", attrs={"class": "verdict"})
        verdict.string = check.summary.get_text()
        check.replace_with(verdict)
    for fold in body.select("details"):
        fold.name, fold.summary.name = "div", "p"
        fold.p["class"] = "admonition-title"
    for title in body.select("p.admonition-title"):
        title.name = "strong"
        title.wrap(soup.new_tag("p"))
    for formula in body.select(".math"):
        told = number.extract().get_text() if (number := formula.select_one(".eqno")) else ""
        tex = SIZED.sub("", formula.get_text().strip())
        formula.string = f"{tex[:-2]}\\qquad {told}{tex[-2:]}" if told else tex  # before the bracket that closes it
    with_own_identifiers(body, page, soup)
    with_links_of_the_book(body, page, pages)
    for image in body.select("img"):
        source = PAGES / normpath(join(dirname(page), unquote(image["src"])))
        image["src"] = str(prepared(source, images))
        image.attrs.pop("srcset", None)
    return body


def with_own_identifiers(body: Tag, page: str, soup: BeautifulSoup) -> None:
    """Make identifiers unique in the book, on elements where pandoc keeps them.

    sphinx-proof and sphinx-exercise repeat theirs on every page; a section's goes to its head, as pandoc divides the
    book where it finds heads that are in no other element.
    """
    seen: set[str] = set()
    for element in [body, *body.select("[id]")]:
        name = element.attrs.pop("id", "")
        if name in seen:
            continue
        seen.add(name)
        if element.name in KEEPING:
            element["id"] = f"{slug(page)}--{name}"
        elif element.name == "figure":
            element.wrap(soup.new_tag("div", attrs={"id": f"{slug(page)}--{name}"}))
        else:
            element.insert(0, soup.new_tag("span", attrs={"id": f"{slug(page)}--{name}"}))
    for section in [body, *body.select("section")]:
        head = section.find(re.compile("h[1-6]"), recursive=False)
        own = [span.extract()["id"] for span in section.find_all(empty_span, recursive=False)]
        if head and own:
            head["id"], head["data-also"] = own[0], " ".join(own[1:])
        if section is not body:
            section.unwrap()
    body.h1["id"], body.h1["data-also"] = slug(page), f"{body.h1['data-also']} {body.h1['id']}"


def empty_span(element: Tag) -> bool:
    """A place that links lead to, and nothing else."""
    return element.name == "span" and "id" in element.attrs and not element.contents


def with_links_of_the_book(body: Tag, page: str, pages: set[str]) -> None:
    """Let links lead within the document; where the page is not in it, the text stays without a link."""
    for link in body.select("a"):
        target = link.get("href", "")
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        other = normpath(join(dirname(page), path)).removesuffix(".html") if path else page
        if other in pages:
            link["href"] = f"#{slug(other)}--{fragment}" if fragment else f"#{slug(other)}"
        else:
            link.unwrap()


def with_links_that_lead_somewhere(document: BeautifulSoup) -> None:
    """Let links to a further name of a head lead to the head; a link to what is left out becomes its text."""
    places = {element["id"]: element["id"] for element in document.select("[id]")}
    for head in document.select("[data-also]"):
        places |= dict.fromkeys(head.attrs.pop("data-also").split(), head["id"])
    for link in document.select('a[href^="#"]'):
        if (target := places.get(link["href"][1:])) is None:
            link.unwrap()
        else:
            link["href"] = f"#{target}"


def prepared(source: Path, images: Path) -> Path:
    """A copy of a picture; an SVG loses the document type that an EPUB may not have, and an empty glyph gets a path."""
    copy = images / source.name
    if source.suffix == ".svg":
        svg = re.sub(r"<!DOCTYPE.*?>", "", source.read_text(encoding="utf-8"), count=1, flags=re.DOTALL)
        copy.write_text(re.sub(r"<path (?![^>]*\bd=)", '<path d="" ', svg), encoding="utf-8")
    else:
        shutil.copy(source, copy)
    return copy


def main() -> None:
    """Write the EPUB."""
    if not (pandoc := shutil.which("pandoc")):
        sys.exit("error: make epub needs pandoc 3; MAINTAINING.md names the package")
    if not PAGES.is_dir():
        sys.exit("error: make epub reads the built pages; run make book first")
    pages, cited = order(), yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    EPUB.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        document = BeautifulSoup("<html><head><title></title></head><body></body></html>", "html.parser")
        for page in pages:
            document.body.extend(list(article(page, set(pages), work).children))
        with_links_that_lead_somewhere(document)
        (work / "book.html").write_text(str(document), encoding="utf-8")
        (work / "book.css").write_text(STYLE, encoding="utf-8")
        command = [
            pandoc, "--from=html+tex_math_single_backslash", "--to=epub3", "--mathml", "--toc", "--toc-depth=2",
            "--split-level=1", "--css=book.css", f"--metadata=title:{cited['title']}", "--metadata=lang:en",
            f"--metadata=author:{', '.join(author.get('name', '') for author in cited['authors'])}",
            f"--metadata=date:{cited['date-released']}", f"--output={EPUB}", "book.html",
        ]  # fmt: skip
        subprocess.run(command, cwd=work, check=True)
    print(f"The book is at {EPUB}")


if __name__ == "__main__":
    main()
