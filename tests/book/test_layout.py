"""What only a browser can tell: formulas on a phone, figures in the dark, a page on paper."""

import pytest
from test_html import Visit


@pytest.fixture(scope="module")
def visit(browser, html, page):
    visit = Visit(browser, (html / f"{page}.html").as_uri())
    visit.page.wait_for_load_state("load")
    visit.page.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise")
    yield visit
    visit.page.close()


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


def test_formulas_stay_in_their_boxes_on_a_phone(visit):
    page = visit.show(width=400)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    assert page.locator("article mjx-container:visible").evaluate_all(OVERFLOWING) == []


def test_numbers_of_formulas_do_not_cover_them_on_a_phone(visit):
    assert visit.show(width=400).locator("article span.eqno:visible").evaluate_all(COVERED) == []


# a comma or a full stop behind a formula that stands on a line below it
LEFT_ALONE = r"""formulas => formulas.filter(formula => {
  const after = formula.nextSibling;
  if (after?.nodeType !== Node.TEXT_NODE || !/^[.,;:!?)]/.test(after.data)) return false;
  const range = document.createRange();
  range.setStart(after, 0);
  range.setEnd(after, 1);
  return range.getBoundingClientRect().top > formula.getBoundingClientRect().bottom;
}).map(formula => formula.textContent.slice(0, 60))"""


def test_no_line_begins_with_the_comma_behind_a_formula(visit):
    assert visit.show(width=400).locator("article span.math:visible").evaluate_all(LEFT_ALONE) == []


MARKS = """boxes => boxes.filter(box => {
  const [more, marked] = [box.scrollWidth > box.clientWidth + 4, box.classList.contains('goes-on')];
  box.scrollLeft = box.scrollWidth;
  box.dispatchEvent(new Event('scroll'));
  const still = box.classList.contains('goes-on');
  box.scrollLeft = 0;
  return more !== marked || still;
}).map(box => box.textContent.slice(0, 60))"""


def test_what_scrolls_fades_until_its_end_is_reached(visit):
    page = visit.show(width=400)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    boxes = "article :is(figure, div.cell_output, .pst-scrollable-table-container, div.highlight pre):visible"
    assert page.locator(boxes).evaluate_all(MARKS) == []


def test_figures_have_no_plate_in_the_dark(visit):
    style = "images => images.map(image => getComputedStyle(image).backgroundColor)"
    found = visit.show(dark=True).locator("article figure img[src$='.svg']").evaluate_all(style)
    assert set(found) <= {"rgba(0, 0, 0, 0)"}


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
    page.pdf()
    assert page.evaluate("printed") == [1]
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(PRINTED) == {"folded": 0, "code": 0, "wide": []}
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate(PRINTED) == before


def test_no_formula_stays_faded_when_a_phone_is_turned(visit):
    page = visit.show(width=400)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    page.set_viewport_size({"width": 850, "height": 400})
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    fading = "formulas => formulas.filter(f => f.scrollWidth - f.clientWidth <= 4).map(f => f.textContent.slice(0, 60))"
    assert page.locator("article mjx-container.goes-on").evaluate_all(fading) == []


FOLDED = """links => links.map(link => link.hash).filter(hash =>
  document.getElementById(decodeURIComponent(hash.slice(1)))?.closest('.admonition.toggle-hidden'))"""


def test_link_into_a_closed_solution_opens_it(visit):
    page = visit.show(width=1300)
    for target in page.locator("article a[href^='#']").evaluate_all(FOLDED)[:1]:
        page.evaluate("target => { location.hash = target }", target)
        page.wait_for_function("target => document.querySelector(target).offsetHeight > 0", arg=target, timeout=5000)
        assert page.locator(target).evaluate("element => element.closest('.toggle-hidden')") is None
        assert 0 <= page.locator(target).evaluate("element => element.getBoundingClientRect().top") < 900
