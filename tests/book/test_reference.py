"""The pages made at each build: front page, index of results, which classifier when, reference of rcpkg."""

import ast
import contextlib
import graphlib
import re
import warnings
from functools import cache

import checks
import nbformat
import numpy as np
import pytest
import registers
import results as results_pages
import yaml
from conftest import ROOT, soup
from model_cases import EACH_ESTIMATOR
from pybtex.database import parse_string
from rcbook import pages
from rcbook.experiments import scorecard
from sklearn.base import clone

import rcpkg


def test_each_result_says_what_it_states_under_a_label_of_its_own():
    """An origin may be open; then the page says that nobody has reviewed it yet."""
    results, labels = results_pages.results(), [result.label for result in results_pages.results()]
    told = [f"{r.label} in {r.page}.ipynb" for r in results if len(r.statement.split()) < 3]
    assert told == [], results_pages.REMEDY
    assert [label for label in set(labels) if labels.count(label) > 1] == [], "two results have this label"


def test_no_origin_is_a_key_of_the_bibliography():
    keys = parse_string((ROOT / "book" / "references.bib").read_text(encoding="utf-8"), "bibtex").entries
    shown = {r.label: set(re.findall(r"\w+", results_pages.in_words(r.origin))) for r in results_pages.results()}
    assert {label: words & set(keys) for label, words in shown.items() if words & set(keys)} == {}


def test_names_that_hold_a_result_exist():
    names = [(result.label, name) for result in results_pages.results() for name in result.names.split()]
    assert names and [found for found in names if list(checks.symbols(f"`{found[1]}`"))] == []


def test_tests_that_hold_a_result_exist():
    tests = [(r.label, *test.split("::")) for r in results_pages.results() for test in r.tests.split()]
    assert tests and [found for found in tests if found[2] not in _functions(found[1])] == []


@cache
def _functions(file):
    (path,) = (ROOT / "tests").rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_results_with_a_proof_have_a_verdict():
    proved = [r for r in results_pages.results() if r.kind in ("theorem", "proposition", "lemma", "corollary")]
    assert len(proved) > 70 and [result.label for result in proved if not result.verdict] == []


def test_every_result_has_a_proof_and_none_rests_on_itself():
    """The arrows start and end at results, and following them never leads back."""
    cited, labels = results_pages.citations(), {result.label for result in results_pages.results()}
    needed = {r.label for r in results_pages.results() if r.kind in ("theorem", "proposition", "lemma", "corollary")}
    assert set(cited) == needed
    assert {label for rests in cited.values() for label in rests} <= labels
    list(graphlib.TopologicalSorter(cited).static_order())  # names a circle, if there is one


def test_a_proof_rests_on_what_it_cites():
    """A result by its label, or by one of its equations; what only the text below the proof names is none."""
    cited = results_pages.citations()
    assert "thm-tm-gradient" in cited["thm-tm-mirror"] and "thm-tm-mirror" in cited["prop-tm-map"]
    assert "thm-tm-gradient" in cited["thm-tm-smooth"]  # it cites the equation of the gradient
    assert "prop-tm-map" not in cited["thm-tm-mirror"]


def test_graph_shows_each_result_with_its_number_and_each_citation(html):
    page = soup(html / "book" / "what_rests_on_what.html")
    boxes = {box["data-result"]: box for box in page.select(".results-graph a")}
    assert list(boxes) == [result.label for result in results_pages.results()]
    rows = page.select("table.results-rests tbody tr")
    for row, (label, box) in zip(rows, boxes.items(), strict=True):
        kind, number = row.select_one("td a").get_text().split()
        assert box.select_one("text").get_text() == f"{kind[0]}{number}" and box["href"].endswith(f"#{label}")
        assert (html / "book" / box["href"].partition("#")[0]).is_file()
        ends = [arrow["data-ends"].split()[0] for arrow in page.select(f'.arrow[data-ends$=" {label}"]')]
        assert len(row.select("td")[1].select("a")) == len(ends)
        assert sorted(ends) == sorted(results_pages.citations().get(label, ()))


@pytest.fixture(scope="module")
def index(browser, html):
    page = browser.new_page()
    page.goto((html / "book" / "theorems.html").as_uri())
    page.wait_for_selector(".results-filter:not([hidden])")
    yield page
    page.close()


def shown(page):
    rows = page.locator("table.results-index tbody tr:visible").count()
    assert page.locator(".results-status").inner_text() == f"{rows} of {len(results_pages.results())} results"
    return rows


def test_index_has_every_result_and_is_filtered(index):
    results = results_pages.results()
    assert shown(index) == len(results)
    index.select_option("select[name=kind]", "theorem")
    assert shown(index) == sum(result.kind == "theorem" for result in results)
    index.select_option("select[name=chapter]", "5")
    part = [r for r in results if r.kind == "theorem" and r.page.startswith("chapters/05_")]
    assert shown(index) == len(part)
    index.select_option("select[name=kind]", "all")
    index.select_option("select[name=chapter]", "all")
    index.select_option("select[name=origin]", "Srivastava (2007)")
    assert shown(index) == sum("thesis2007" in result.origin for result in results) > 0
    index.select_option("select[name=origin]", "all")
    index.fill("input[name=words]", "mirror")
    assert 0 < shown(index) < len(results)


def test_index_is_whole_without_javascript(html):
    page = soup(html / "book" / "theorems.html")
    rows = page.select("table.results-index tbody tr")
    assert len(rows) == len(results_pages.results())
    assert all(re.fullmatch(r"\w+ \d+\.\d+", row.select_one("td a").get_text()) for row in rows)
    assert "label" not in page.select_one("table.results-index thead").get_text()


def test_table_of_classifiers_has_every_one():
    assert set(registers.classifier_entries().name) == registers.classifiers()


@pytest.mark.parametrize("entry", list(registers.classifier_entries().itertuples(index=False)), ids=lambda e: e.name)
def test_card_of_a_classifier_has_all_its_places(entry):
    card = "\n".join(registers.classifier_card(entry))
    assert all(place and place == place.strip() for place in entry)
    assert ">>> from rcpkg import" in card and f"{entry.name}(" in card.partition("```pycon")[2]
    places = ("Idea", "Take it for", "Do not take it for", "Cost of a fit", "Missing values", "It takes", "See also")
    found = [card.index(mark) for mark in (*(f"- **{place}**: " for place in places[:3]), "```pycon")]
    found += [card.index(f"- **{place}**: ") for place in places[3:]]
    assert found == sorted(found) and entry.formula in card


OF_CATEGORIES = {"CategoricalNB", "TAN", "KDependenceBayes", "BernoulliNB", "MultinomialNB", "WANBIAC"}


@pytest.mark.parametrize("entry", list(registers.classifier_entries().itertuples(index=False)), ids=lambda e: e.name)
@pytest.mark.parametrize("training", [False, True], ids=["prediction", "training"])
def test_table_of_classifiers_says_who_takes_missing_values(entry, training):
    rng, model = np.random.default_rng(0), clone(EACH_ESTIMATOR[entry.name])
    if entry.name in OF_CATEGORIES:
        model.set_params(prior_strength=1.0)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 2)) + y[:, None]
    X = (X > 0.5).astype(float) if entry.name in OF_CATEGORIES else X
    gappy = X.copy()
    gappy[::7, 0] = np.nan
    refused = entry.unknown == "refused" or (training and "in training: refused" in entry.unknown)
    with warnings.catch_warnings(action="ignore"):
        model = model if training else model.fit(X, y)
        with pytest.raises(ValueError, match="missing") if refused else contextlib.nullcontext():
            model.fit(gappy, y) if training else model.predict(gappy)


def test_reference_has_every_public_name(html):
    text = "".join(path.read_text(encoding="utf-8") for path in (html / "book" / "api").glob("*.html"))
    public = [name for name in rcpkg.__all__ if getattr(getattr(rcpkg, name), "__module__", "").startswith("rcpkg")]
    assert len(public) > 30 and [name for name in public if not re.search(rf'id="rcpkg\.[\w.]*\b{name}"', text)] == []


def words_of(html, page):
    return " ".join(soup(html / "book" / f"{page}.html").find("article").get_text().split())


def test_findings_come_with_their_numbers(html):
    text, card = words_of(html, "findings"), scorecard()
    for verdict, words in [
        ("reproduced", "come out as printed"),
        ("statistically consistent", "differ by no more than"),
        ("differs: unexplained", "for none that we know"),
    ]:
        assert f"{(card.verdict == verdict).sum():,} {words}" in text
    assert f"Of {len(card):,} published numbers" in text
    source = (ROOT / "book" / "findings.md").read_text(encoding="utf-8")
    used = set(re.findall(r"\{\{ (\w+) \}\}", source)) & set(pages.record("numbers"))
    assert len(used) >= 40
    assert re.findall(r"\{\{ *\w+ *\}\}", text + words_of(html, "intro")) == []


def test_front_page_shows_code_and_what_it_printed(html):
    how_to = nbformat.read(ROOT / "book" / "how_to_classify.ipynb", as_version=4)
    (cell,) = [cell for cell in how_to.cells if "front-page" in cell.metadata.get("tags", [])]
    shown = [block.get_text() for block in soup(html / "book" / "intro.html").select("div.cell pre")]
    assert [text.strip() for text in shown] == [cell.source.strip(), cell.outputs[0].text.strip()]
    assert len([line for line in cell.source.splitlines() if line]) <= 10


def test_front_page_has_bibtex_and_text_of_book_chapter_and_library(html):
    work = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page = soup(html / "book" / "intro.html")
    entries = [block.get_text() for block in page.select("article .highlight-bibtex pre")]
    parsed = parse_string("\n".join(entries), "bibtex").entries
    assert [entry.type for entry in parsed.values()] == ["book", "incollection", "software"]
    assert {(entry.fields["version"], entry.fields["date"]) for entry in parsed.values()} == {
        (work["version"], str(work["date-released"]))
    }
    lines = [block.get_text() for block in page.select("article details .highlight-text pre")]
    assert len(lines) == len(parsed)
    for line, entry in zip(lines, parsed.values(), strict=True):
        assert entry.fields["title"].strip("{}") in line and work["version"] in line


def test_a_symbol_means_one_thing_in_a_chapter_and_occurs_there():
    for path in sorted(ROOT.glob("chapters/??_*.ipynb")):
        pages = [path, *ROOT.glob(f"chapters/{path.name[:2]}s_*.ipynb")]  # the chapter, and its supplement
        cells = [cell for page in pages for cell in nbformat.read(page, as_version=4).cells]
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        formulas = "".join(re.findall(r"\$\$.*?\$\$|\$[^$]+\$", prose, re.DOTALL))
        symbols = [
            symbol.split(" = ")[0].replace(" ", "")
            for row in registers.of_chapter(int(path.name[:2])).itertuples()
            for symbol in re.findall(r"\$([^$]+)\$", row.symbol)
        ]
        assert sorted(symbols) == sorted(set(symbols)), path.stem
        heads = {re.match(r"\\?\{?[A-Za-z]+|.", symbol)[0] for symbol in symbols}
        assert [head for head in heads if head not in re.sub(r"\s", "", formulas)] == [], path.stem


def test_symbols_of_the_whole_book_are_told_apart():
    shared = [symbol for row in registers.shared().itertuples() for symbol in re.findall(r"\$([^$]+)\$", row.symbol)]
    assert sorted(shared) == sorted(set(shared))
