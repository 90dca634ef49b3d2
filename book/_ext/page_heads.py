"""What a page tells other programs: a description, a card for links, mathematics from the top down; an index of what
each section says, which ``_static/search.js`` looks through. What the theme would load in vain is left out.

Browsers refuse to fetch other pages from ``file://``, so that Sphinx could not show a line of what it finds there; a
script may be loaded.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from fontTools.subset import Subsetter  # matplotlib brings it
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LONGEST = 200  # letters of a description
# MathJax would show nothing before all formulas of a page are set: set those in view first, the others in portions
TOP_FIRST = """
window.MathJax = {...window.MathJax, startup: {...(window.MathJax || {}).startup, async pageReady() {
  const PORTION = 60;
  const all = [...document.querySelectorAll('.math')];
  const seen = (formula) => {
    const box = formula.getBoundingClientRect();
    return box.bottom > -innerHeight && box.top < 2 * innerHeight;
  };
  const first = all.filter(seen), rest = all.filter((formula) => !first.includes(formula));
  if (first.length) await MathJax.typesetPromise(first);
  for (let start = 0; start < rest.length; start += PORTION) {
    await new Promise((next) => setTimeout(next));
    await MathJax.typesetPromise(rest.slice(start, start + PORTION));
  }
}}};
"""


def description(doctree: nodes.document) -> str:
    """The beginning of the first paragraph, up to a whole word."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split())
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"
    return ""


def add_head(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    if doctree is None:
        return
    base = context.get("pageurl") and app.config.html_baseurl
    title = nodes.Text(app.env.titles[pagename].astext()).astext()
    told = {
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": description(doctree),
        "og:image": f"{base or context['content_root']}_static/page.png",
        "og:image:alt": "A page of the book: two densities and the boundary between them, and the code that drew them",
    }
    tags = [f'<meta property="{name}" content="{escape(text)}" />' for name, text in told.items() if text]
    tags.append(f'<meta name="description" content="{escape(told["og:description"])}" />')
    tags.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(tags)
    if doctree.next_node(nodes.math) or doctree.next_node(nodes.math_block):
        app.add_js_file(None, body=TOP_FIRST, priority=900)  # behind the options that Sphinx sets


PASSED_OVER = (nodes.raw, nodes.literal_block, nodes.comment, nodes.target, nodes.system_message)
PARAGRAPHS = (nodes.paragraph, nodes.caption, nodes.term, nodes.title, nodes.rubric, nodes.entry)


def words(node: nodes.Node) -> str:
    """What the node says, without formulas' TeX, code and sections below."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, PASSED_OVER) or (isinstance(node, nodes.Element) and node.get("nb_element") == "cell_code"):
        return ""
    if isinstance(node, nodes.section) and title_of(node):
        return ""
    if isinstance(node, nodes.math | nodes.math_block):
        return "…"
    said = "".join(map(words, node.children))
    return f"{said} " if isinstance(node, PARAGRAPHS) else said


def title_of(section: nodes.section) -> str:
    """Statements and exercises are sections without one: they belong to the section around them."""
    first = section.next_node(nodes.title)
    return first.astext() if first is not None and first.parent is section else ""


def sections(doctree: nodes.document) -> list[list[str]]:
    """Anchor, title (with its chapter before it) and text of each section of a page."""
    result = []
    for section in filter(title_of, doctree.findall(nodes.section)):
        path, above = [title_of(section)], section.parent
        while isinstance(above, nodes.section):
            path.insert(0, title_of(above))
            above = above.parent
        said = [words(child) for child in section.children if not isinstance(child, nodes.title)]
        anchor = section["ids"][0] if len(path) > 1 and section["ids"] else ""
        result.append([anchor, " › ".join(filter(None, path)), " ".join(" ".join(said).split())])
    return result


def collect_sections(app: Sphinx, pagename: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    if pagename == "search":
        app.add_js_file("sections.js", loading_method="defer")
        app.add_js_file("search.js", loading_method="defer")
    elif doctree is not None:
        file = stored(app, pagename)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(sections(doctree)), encoding="utf-8")


def stored(app: Sphinx, pagename: str) -> Path:
    """Where the sections of a page wait for those of the others: pages are written by several processes."""
    return Path(app.doctreedir, f"{pagename}.sections")


def write_sections(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        found = {page: stored(app, page) for page in sorted(app.env.found_docs)}
        parts = {page: json.loads(file.read_text(encoding="utf-8")) for page, file in found.items() if file.exists()}
        index = [[app.builder.get_target_uri(page), *section] for page, part in parts.items() for section in part]
        text = f"window.BOOK_SECTIONS = {json.dumps(index, ensure_ascii=False)};\n"
        Path(app.outdir, "_static", "sections.js").write_text(text, encoding="utf-8")


# icons are drawn by the font, which is loaded as well, and only the page of the search searches
LOADED = r"(?:scripts/fontawesome|searchtools|language_data|searchindex)\.js"
IN_VAIN = re.compile(rf'\s*<script [^>]*src="[^"]*{LOADED}[^>]*></script>')


# a picture is loaded when the reader comes near, and its place is kept until then
PICTURE = re.compile(r'<img (?!loading)(?=[^>]*src="[^"]*(_images/[^"]+\.svg)")')


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """Leave out of each page the scripts that it has no use for, and let its pictures wait."""

    def waiting(image: re.Match[str]) -> str:
        head = Path(app.outdir, image[1]).read_text(encoding="utf-8")[:1000]
        sides = [re.search(rf' {side}="([\d.]+)pt"', head) for side in ("width", "height")]
        if None in sides:
            raise ExtensionError(f"{image[1]} does not give its width and height in pt")
        width, height = (float(side[1]) * 4 / 3 for side in sides)
        return f'<img loading="lazy" width="{width:.0f}" height="{height:.0f}" '

    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            light = PICTURE.sub(waiting, text)
            if page.name != "search.html":
                light = IN_VAIN.sub("", light)
            if light != text:
                page.write_text(light, encoding="utf-8")


ICON = re.compile(r'(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}')
ESCAPED = re.compile(r'"\\([0-9a-f]{2,4})"')
ICON_NAME = re.compile(r"fa-[\w-]+")


def keep_icons_in_use(app: Sphinx, exception: Exception | None) -> None:
    """Of nineteen hundred icons keep those that pages or scripts name, in the style sheet and in the font."""
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir, "_static")
        files = [*Path(app.outdir).rglob("*.html"), *static.glob("scripts/*-theme.js"), *static.glob("*.js")]
        named = {name for file in files for name in ICON_NAME.findall(file.read_text(encoding="utf-8"))}
        style, font = static / "styles/pydata-sphinx-theme.css", static / "vendor/fontawesome/webfonts/fa-solid-900.ttf"
        text = style.read_text(encoding="utf-8")
        text = ICON.sub(lambda icon: icon[0] if named & set(ICON_NAME.findall(icon[0])) else "", text)
        if not ICON.search(text):
            raise ExtensionError(f"{style.name} writes no icon that pages name as {ICON.pattern}")
        text = text.replace(f'url(../{font.with_suffix(".woff2").relative_to(static)}) format("woff2"),', "")
        style.write_text(text, encoding="utf-8")
        smaller = Subsetter()
        smaller.populate(unicodes=[int(code, 16) for code in ESCAPED.findall(text)], text=text)
        with TTFont(font, recalcTimestamp=False) as whole:
            smaller.subset(whole)
            whole.save(font)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_head)
    app.connect("html-page-context", collect_sections)
    app.connect("build-finished", write_sections)
    app.connect("build-finished", lighten)
    app.connect("build-finished", keep_icons_in_use)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
