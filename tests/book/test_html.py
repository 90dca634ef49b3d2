"""The rendered book: complete, self-contained, legible in light and dark, wide, narrow and on paper, and accessible."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import checks
import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import soup
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
RAW = re.compile(
    r":{3,}\s*\{|`{3}\{|\{(?:prf:)?(?:ref|numref|eq|doc|cite(?::\w+)?|glue(?::\w+)?)\}|^\s*:label:|\$\$", re.MULTILINE
)
RAW_TEX = re.compile(r"\\[A-Za-z]{2,}|\$[^$\n]{1,80}\$")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Serious findings of axe-core in markup that is not ours: (rule, part of the selector) and whose it is.
FOREIGN_FINDINGS = {
    ("aria-required-children", ".citation-list"): "docutils gives bibliography entries a role that lists do not allow"
}


parsed = cache(soup)  # once for all tests: nothing may change it


@cache
def anchors(path: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))


def soup_of(html: Path, page: str) -> BeautifulSoup:
    return parsed(html / f"{page}.html")


def text_of(html: Path, page: str) -> str:
    """What a page says, without code and formulas."""
    article = copy(soup_of(html, page).find("article"))
    for literal in article.find_all(["pre", "code", "script", "style"]) + article.select(".math"):
        literal.decompose()
    return article.get_text()


def test_page_shows_no_raw_directive_or_tex_and_no_control_character(html, page):
    text = text_of(html, page)
    assert RAW.findall(text) + RAW_TEX.findall(text) + CONTROL.findall(text) == []


FAULTS_OF_TEXT = {
    "items of a list that, indented by too little, are a listing": ("article pre", RAW),
    "items of a list that run on in a paragraph": ("article p", re.compile(r"\n\s*[2-9]\. ")),
    "learning rates in italics": (".math", re.compile(r"(?<![\\A-Za-z{])lr(?![A-Za-z])")),
}


@pytest.mark.parametrize("fault", FAULTS_OF_TEXT)
def test_text_of_a_page_has_no(html, page, fault):
    where, wrong = FAULTS_OF_TEXT[fault]
    assert [text for part in soup_of(html, page).select(where) if wrong.search(text := part.get_text())] == []


def test_page_loads_nothing_from_other_hosts(html, page):
    soup = soup_of(html, page)
    urls = [tag.get("src") or tag.get("href") for tag in soup.find_all(["script", "link", "img", "iframe", "source"])]
    assert [url for url in urls if url and re.match(r"(https?:)?//", url)] == []
    # nor a megabyte of icons beside their font, nor an index that the page of the search alone looks into
    assert [url for url in urls if url and re.search(r"fontawesome\.js|searchindex\.js", url)] == []


def test_icons_of_a_page_are_in_the_style_sheet_and_in_the_font(html, page):
    style = (html / "_static/styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
    drawn = TTFont(html / "_static/vendor/fontawesome/webfonts/fa-solid-900.ttf").getBestCmap()
    for classes in {" ".join(icon["class"]) for icon in soup_of(html, page).select(".fa-solid, .fas")}:
        codes = [re.findall(rf'\.{name}:before[^{{]*{{content:"\\(\w+)"', style) for name in classes.split()]
        assert [code for (code,) in filter(None, codes) if int(code, 16) in drawn], classes


def test_links_within_the_book_have_targets(html, page):
    broken = []
    here = html / f"{page}.html"
    for link in soup_of(html, page).find_all("a", href=True):
        url, fragment = urldefrag(link["href"])
        if urlparse(url).scheme:
            continue
        target = (here.parent / unquote(url)).resolve() if url else here
        missing = not target.exists()
        elsewhere = not missing and fragment and target.suffix == ".html" and unquote(fragment) not in anchors(target)
        if missing or elsewhere:
            broken.append(link["href"])
    assert broken == []


def test_chapter_has_its_figures(html, chapter):
    notebook = nbformat.read(chapter, as_version=4)
    page = f"chapters/{chapter.stem}"
    soup = soup_of(html, page)
    for made in checks.captions_in_view(notebook, "figure"):
        figure = soup.find(id=made["name"])
        assert figure is not None, made["name"]
        image = figure.find("img")
        assert ((html / page).parent / image["src"]).stat().st_size > 1000
        assert len(image["alt"].split()) >= 5
        assert figure.find("figcaption") is not None


def test_chapter_is_numbered_by_its_file_name(html, chapter):
    number = int(chapter.stem[:2])
    soup = soup_of(html, f"chapters/{chapter.stem}")
    headings = [
        heading.find("span", class_="section-number").get_text().strip()
        for heading in soup.select("article h1, article h2")[:2]
    ]
    if is_supplement(chapter):  # stands below its chapter, after the sections of that
        assert re.fullmatch(rf"{number}\.\d+\.", headings[0]) and headings[1].startswith(headings[0])
    else:
        assert headings == [f"{number}.", f"{number}.1."]


def is_supplement(chapter):
    return chapter.stem[2] == "s"


def test_list_of_the_front_page_has_every_chapter_and_a_chapter_names_its_supplement(html, chapter):
    if is_supplement(chapter):
        (above,) = chapter.parent.glob(f"{chapter.stem[:2]}_*.ipynb")
        link = f'article a[href*="{chapter.stem}.html"]'
        assert soup_of(html, f"chapters/{above.stem}").select_one(link), f"{above.stem} does not name its supplement"
    else:
        entry = soup_of(html, "book/intro").select_one(f'dt a[href$="{chapter.stem}.html"]').find_parent("dt")
        assert entry.get_text().startswith(f"{int(chapter.stem[:2])} ")


def test_a_check_is_one_line_with_its_findings_and_code_behind_it(html, chapter):
    notebook = nbformat.read(chapter, as_version=4)
    verdicts = [cell for cell in notebook.cells if any(tag.startswith("check") for tag in checks.tags(cell))]
    folds = soup_of(html, f"chapters/{chapter.stem}").select("details.check")
    assert len(folds) == len(verdicts)
    for fold, cell in zip(folds, verdicts, strict=True):
        printed = cell.outputs[0].text.removeprefix("checked: ").strip()
        assert "; ".join(item.get_text() for item in fold.select("ul > li")) == printed
        assert fold.select_one("div.cell_input") is not None


def test_page_describes_itself_to_other_programs(html, page):
    head = soup_of(html, page).find("head")
    told = {tag["property"]: tag["content"] for tag in head.find_all("meta", property=True)}
    assert told["og:title"] and told["og:image"].endswith("_static/page.png")
    assert head.find("link", rel=lambda rel: rel and "icon" in rel)["href"].endswith("favicon.svg")


class Visit:
    """A page opened in the browser, with what went wrong and what it asked for."""

    def __init__(self, browser: Browser, url: str):
        self.page = browser.new_page(viewport={"width": 1300, "height": 900}, color_scheme="light")
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        self.page.wait_for_load_state("load")
        self.page.add_style_tag(content="*, ::before, ::after { transition: none !important; }")
        self.page.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise")

    def show(self, *, width: int = 1300, dark: bool = False) -> Page:
        self.page.set_viewport_size({"width": width, "height": 900})
        theme = "dark" if dark else "light"
        self.page.emulate_media(color_scheme=theme)
        self.page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        return self.page


@pytest.fixture(scope="module")
def visit(browser, html, page):
    visit = Visit(browser, (html / f"{page}.html").as_uri())
    yield visit
    visit.page.close()


def test_page_runs_without_errors_and_without_the_network(visit):
    assert visit.errors == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []


FOLDED = """links => links.map(link => link.hash).filter(hash =>
  document.getElementById(decodeURIComponent(hash.slice(1)))?.closest('.admonition.toggle-hidden'))"""


def test_link_into_a_closed_solution_opens_it(visit):
    page = visit.show(width=1300)
    for target in page.locator("article a[href^='#']").evaluate_all(FOLDED)[:1]:
        page.evaluate("target => { location.hash = target }", target)
        page.wait_for_function("target => document.querySelector(target).offsetHeight > 0", arg=target, timeout=5000)
        assert page.locator(target).evaluate("element => element.closest('.toggle-hidden')") is None
        assert 0 <= page.locator(target).evaluate("element => element.getBoundingClientRect().top") < 900


def test_one_search_box(visit):
    boxes = "input[type=search]:visible, .search-button-field:visible, .search-button:visible"
    assert visit.show().locator(boxes).count() == 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 400])
def test_page_fits_the_window(visit, width, dark):
    page = visit.show(width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


#: marks one of the texts that look alike, of one colour and size on the same grounds: their contrast is the same
ALIKE = """() => {
  const grounds = new Map([[null, '']]), seen = new Set();
  const ground = (element) => {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      grounds.set(element, `${ground(element.parentElement)} ${backgroundColor} ${backgroundImage} ${opacity};`);
    }
    return grounds.get(element);
  };
  for (const element of document.body.querySelectorAll('*')) {
    if (![...element.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim())) continue;
    const { color, fontSize, fontWeight, textShadow, visibility } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, textShadow, visibility, !element.offsetHeight, ground(element)].join();
    element.toggleAttribute('data-look', !seen.has(look));
    seen.add(look);
  }
}"""


def serious_findings(page: Page, part: str, rules: dict) -> set[str]:
    """What some rules of axe-core find to be serious or critical, in a part of the page, and is ours."""
    found = Axe().run(page, {"include": [[part]]}, {"resultTypes": ["violations"], **rules}).response["violations"]
    return {
        f"{violation['id']}: {node['target']} {node['html'][:120]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
        if not any(violation["id"] == rule and selector in str(node["target"]) for rule, selector in FOREIGN_FINDINGS)
    }


@contextmanager
def few_glyphs(page: Page) -> Iterator[None]:
    """The page with empty formulas, but for ten: axe-core walks through all their glyphs."""
    page.evaluate("""() => {
      const formulas = [...document.querySelectorAll('mjx-container')].slice(10);
      window.formulas = formulas.map(formula => [formula, [...formula.childNodes]]);
      window.formulas.forEach(([formula]) => formula.replaceChildren());
    }""")
    try:
        yield
    finally:
        page.evaluate("() => window.formulas.forEach(([formula, glyphs]) => formula.replaceChildren(...glyphs))")


def test_page_is_accessible(visit):
    with few_glyphs(page := visit.show()):
        assert serious_findings(page, "html", {"rules": {"color-contrast": {"enabled": False}}}) == set()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(visit, dark):
    with few_glyphs(page := visit.show(dark=dark)):
        page.evaluate(ALIKE)
        assert serious_findings(page, "[data-look]", {"runOnly": ["color-contrast"]}) == set()


# of glyphs axe-core tells nothing
COLOURED = """formulas => formulas.filter(formula => [formula, ...formula.querySelectorAll('*')].some(
  glyph => getComputedStyle(glyph).color !== getComputedStyle(formula.parentElement).color)
).map(formula => formula.textContent.slice(0, 60))"""


# a formula may be wider than the text if it scrolls in itself, or in something that does
OVERFLOWING = """formulas => formulas.filter(formula => {
  for (let box = formula; box && box.tagName !== 'ARTICLE'; box = box.parentElement)
    if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return false;
  return formula.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(formula => formula.textContent.slice(0, 60))"""

COVERED = """numbers => numbers.filter(number => {
  const formula = number.parentElement.querySelector('mjx-math');
  if (!formula) return false;
  const [a, b] = [number, formula].map(element => element.getBoundingClientRect());
  return a.width && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
}).map(number => number.textContent)"""


# a comma, a full stop or a hyphen behind a formula that stands on a line below it
LEFT_ALONE = r"""formulas => formulas.filter(formula => {
  const after = formula.nextSibling;
  if (after?.nodeType !== Node.TEXT_NODE || !/^[-.,;:!?)]/.test(after.data)) return false;
  const range = document.createRange();
  range.setStart(after, 0);
  range.setEnd(after, 1);
  return range.getBoundingClientRect().top > formula.getBoundingClientRect().bottom;
}).map(formula => formula.textContent.slice(0, 60))"""


MARKS = """boxes => boxes.filter(box => {
  const [more, marked] = [box.scrollWidth > box.clientWidth + 4, box.classList.contains('goes-on')];
  box.scrollLeft = box.scrollWidth;
  box.dispatchEvent(new Event('scroll'));
  const still = box.classList.contains('goes-on');
  box.scrollLeft = 0;
  return more !== marked || still;
}).map(box => box.textContent.slice(0, 60))"""


def test_what_scrolls_in_a_solution_fades_once_it_is_opened(visit):
    """Code is narrower there than while the solution was folded."""
    page = visit.show()
    page.wait_for_timeout(100)  # the marks of this width are made
    page.locator(".solution .toggle-button").evaluate_all("buttons => buttons.forEach(button => button.click())")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert page.locator(".solution div.highlight pre:visible").evaluate_all(MARKS) == []


CUT = "names => names.filter(name => name.scrollWidth > name.clientWidth + 1).map(name => name.textContent.trim())"
UNSEEN = "images => images.filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
LONG = """captions => captions.filter(caption => {
  const style = getComputedStyle(caption), height = parseFloat(style.height) - parseFloat(style.paddingTop)
  return caption.offsetParent && (height - parseFloat(style.paddingBottom)) / parseFloat(style.lineHeight) > 3.5
}).map(caption => caption.innerText)"""


PRINTED = """() => ({
  folded: [...document.querySelectorAll('article details.sd-dropdown:not([open]), article .toggle-hidden')].length,
  code: [...document.querySelectorAll('article details.hide:not([open])')].filter(e => e.offsetHeight).length,
  wide: [...document.querySelectorAll('article mjx-math')].filter(e => e.getBoundingClientRect().width > 605)
    .map(e => e.textContent.slice(0, 60)),
})"""


def test_page_on_paper_shows_its_proofs_and_whole_formulas_and_no_folded_code(visit):
    page = visit.show()
    before = page.evaluate(PRINTED)
    page.evaluate("window.printed = []; addEventListener('beforeprint', () => printed.push(1))")
    page.pdf(page_ranges="1")
    assert page.evaluate("printed") == [1]
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(PRINTED) == {"folded": 0, "code": 0, "wide": []}
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate(PRINTED) == before


# a name in the code that stands neither beside its symbol nor at the beginning of a line
ASTRAY = """names => names.filter(name => {
  const row = name.parentElement.getBoundingClientRect(), symbol = name.parentElement.firstElementChild;
  const { top, left } = name.getBoundingClientRect();
  return top > symbol.getBoundingClientRect().bottom - 4 && left > row.left + 4;
}).map(name => name.textContent)"""


# a formula within a sentence that scrolls without having been set as small as can be read
SCROLLS_TOO_SOON = """formulas => formulas.filter(
  formula => !(parseFloat(formula.style.fontSize) < 0.701 * parseFloat(formula.dataset.size))
).map(formula => formula.textContent.slice(0, 60))"""


HIDDEN_BY_FADING = """captions => captions.filter(caption => {
  const table = caption.closest('.pst-scrollable-table-container').getBoundingClientRect();
  return caption.getBoundingClientRect().right > table.right - 30;
}).map(caption => caption.innerText)"""


def test_no_formula_stays_faded_when_a_phone_is_turned(visit):
    page = visit.show(width=400)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    page.set_viewport_size({"width": 850, "height": 400})
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    fading = "formulas => formulas.filter(f => f.scrollWidth - f.clientWidth <= 4).map(f => f.textContent.slice(0, 60))"
    assert page.locator("article mjx-container.goes-on").evaluate_all(fading) == []


TWICE = """folds => folds.filter(fold => {
  const next = fold.parentElement.nextElementSibling?.querySelector(':scope > details.hide');
  const shown = [fold, next].filter(one => one?.querySelector('summary').offsetHeight);
  return !fold.nextElementSibling && shown.length == 2 && shown.some(one => one.innerText.startsWith('show source'));
}).map(fold => fold.innerText)"""

OPENS = """joined => joined.filter(fold => {
  for (const other of [true, false]) {
    fold.mark.open = other;
    fold.mark.dispatchEvent(new Event('toggle'));
    if (fold.open != other) return true;
  }
}).map(fold => fold.innerText)"""


# neither their colour nor their rim, by which a page would be longer in the dark
PLATES = """images => images.map(getComputedStyle).filter(
  style => style.backgroundColor !== 'rgba(0, 0, 0, 0)' || style.padding !== '0px').map(style => style.padding)"""
FRAMED = "tables => tables.map(table => getComputedStyle(table).borderTopWidth).filter(width => width !== '0px')"
APART = "entries => entries.map(entry => getComputedStyle(entry).marginBottom).filter(gap => parseFloat(gap) > 16)"

CAPTIONED = ".pst-scrollable-table-container > table:has(> caption)"
SCROLLING = "article :is(figure, div.cell_output, .pst-scrollable-table-container, div.highlight pre):visible"
WIDE, PHONE, DARK = {"width": 1300}, {"width": 400}, {"dark": True}
#: what a page has none of: how it is shown, where to look, and what finds it
FAULTS = {
    "formulas that are set wrongly": (WIDE, "mjx-merror, [data-mjx-error]", "all => all.map(one => one.textContent)"),
    "formulas of another colour than their text": (WIDE, "article mjx-container", COLOURED),
    "images that are not shown": (WIDE, "article img", UNSEEN),
    "captions of more than three lines": (WIDE, "article :is(figcaption, caption)", LONG),
    "names of sections that are cut": (WIDE, ".page-toc .nav-link:visible", CUT),
    "two marks of folded code in a row": (WIDE, "div.cell > details.hide", TWICE),
    "marks that do not open what they join": (WIDE, "details.joined", OPENS),
    "plates of figures in the dark": (DARK, "article figure img[src$='.svg']", PLATES),
    "frames of tables with a caption in the dark": (DARK, CAPTIONED, FRAMED),
    "entries of the reference far from each other": (WIDE, "article dd dl.py", APART),
    "names of other pages that are cut": (PHONE, ".prev-next-area a", CUT),
    "formulas that leave their boxes": (PHONE, "article mjx-container:visible", OVERFLOWING),
    "formulas that scroll too soon": (PHONE, "article mjx-container.wide:visible", SCROLLS_TOO_SOON),
    "numbers that cover a formula": (PHONE, "article span.eqno:visible", COVERED),
    "lines that begin with a comma": (PHONE, "article span.math:visible", LEFT_ALONE),
    "wrong marks of what scrolls": (PHONE, SCROLLING, MARKS),
}
FAULTS_OF_FOLDS = {  # once they are open
    "names that stand beside no symbol": (PHONE, "table.notation td:nth-child(3):visible", ASTRAY),
    "captions at an edge that fades": (PHONE, ".goes-on > table > caption:visible", HIDDEN_BY_FADING),
}


def faults(page: Page, where: str, script: str) -> list[str]:
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    return page.locator(where).evaluate_all(script)


@pytest.mark.parametrize("fault", FAULTS)
def test_page_has_no(visit, fault):
    how, where, script = FAULTS[fault]
    assert faults(visit.show(**how), where, script) == []


def test_mathematics_is_rendered(visit):
    page = visit.show()
    assert page.locator("article mjx-container").count() >= page.locator("article .math").count()


@pytest.mark.parametrize("fault", FAULTS_OF_FOLDS)
def test_folds_have_no(visit, fault):
    how, where, script = FAULTS_OF_FOLDS[fault]
    page = visit.show(**how)
    page.evaluate("document.querySelectorAll('.toggle-hidden').forEach(fold => fold.classList.remove('toggle-hidden'))")
    page.evaluate("document.querySelectorAll('article details').forEach(fold => (fold.open = true))")
    assert faults(page, where, script) == []


SEARCHES = [("notation", "notation"), ("pooled target", "target"), ("leaf", "leaf")]
OTHERWISE = [("imputation", "gaps"), ("leave-one-out", "left"), ("xgboost", "boosting")]


@pytest.mark.parametrize(("query", "title"), [*SEARCHES, *OTHERWISE])
def test_search_finds_sections_and_shows_a_line(browser, html, query, title):
    """Also of words for which the book has others."""
    visit = Visit(browser, (html / "search.html").as_uri() + f"?q={query.replace(' ', '+')}")
    visit.page.wait_for_selector("#search-results li p.context")
    titles = visit.page.locator("#search-results li a").all_inner_texts()
    assert any(title in found.lower() for found in titles[: 10 if (query, title) in OTHERWISE else 1])
    lines = visit.page.locator("#search-results li p.context mark").all_inner_texts()
    assert (query, title) in OTHERWISE or {line.lower().rstrip("s") for line in lines} >= set(query.split())
    targets = visit.page.locator("#search-results li a").evaluate_all("links => links.map(link => link.href)")
    for target in targets[:20]:
        url, fragment = urldefrag(target)
        path = Path(unquote(urlparse(url).path))
        assert path.exists() and (not fragment or unquote(fragment) in anchors(path))
    assert visit.errors == []
    visit.page.close()
