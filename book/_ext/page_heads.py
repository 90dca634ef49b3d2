"""What the head of a page tells other programs: a description, a card for links, and mathematics from the top down."""

from html import escape

from docutils import nodes
from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_head)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
