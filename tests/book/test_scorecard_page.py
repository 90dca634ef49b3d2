"""The scorecard in the book: counts, links, the list of all numbers with its filters, and what works without them."""

import csv
import re
from pathlib import Path

import pytest
from conftest import soup
from rcbook.experiments import check_claims
from rcbook.experiments.power import power, power_by_table
from rcbook.words import in_words

pytestmark = pytest.mark.slow
CHAPTER = "chapters/21_scorecard.html"


@pytest.fixture(scope="module")
def card():
    return power()


@pytest.fixture(scope="module")
def list_of_numbers(browser, html):
    page = browser.new_page()
    page.goto((html / CHAPTER).as_uri())
    page.wait_for_selector(".scorecard-filter:not([hidden])")
    yield page
    page.close()


def total(page) -> int:
    return int(re.match(r"[\d,]+", page.locator(".scorecard-status").inner_text())[0].replace(",", ""))


def test_each_reason_and_each_failing_claim_has_its_row_and_link(html, card):
    page = soup(html / CHAPTER)
    reasons = " ".join(table.get_text(" ") for table in page.select("table.scorecard-reasons"))
    explained = card[card.verdict == "differs: explained"]
    links = page.select("table.scorecard-reasons a.reference")
    assert len(links) == len(explained.groupby(["source", "why", "section"]))
    assert all(why.split("`")[0][:40] in reasons for why in explained.why)
    assert len(page.select("table.scorecard-claims a.reference")) == (check_claims().erratum != "").sum()


def test_each_table_that_is_compared_says_what_it_decides(html, card):
    page = soup(html / CHAPTER)
    (table,) = page.select("table.scorecard-power")
    rows = [[cell.get_text(" ", strip=True) for cell in row.select("td")] for row in table.select("tbody tr")]
    expected = power_by_table(card)
    compared = expected.compared.astype(str)
    assert [row[:2] for row in rows] == [[in_words(" ".join(key)), number] for key, number in compared.items()]
    assert not re.search(r"[a-z]\d{4}", table.get_text(" "))
    assert [int(row[4].replace("–", "0")) for row in rows] == expected.decidable.tolist()
    assert "stated after the results were known" in page.get_text(" ")


def test_file_to_download_has_every_number(html, card):
    with open(html / "_static" / "scorecard.csv", encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == len(card)


def test_list_is_filtered_by_source_table_verdict_and_words(list_of_numbers, card):
    page = list_of_numbers
    assert total(page) == len(card)
    assert page.locator(".scorecard-rows tbody tr").count() == 50
    offered = page.locator("select[name=source] option").all_inner_texts()
    assert offered == ["all", *(in_words(source) for source in card.source.unique())]
    page.select_option("select[name=source]", "rc2024")
    page.select_option("select[name=table]", "II")
    part = card[(card.source == "rc2024") & (card.table == "II")]
    assert total(page) == len(part)
    page.select_option("select[name=verdict]", "reproduced")
    part = part[part.verdict == "reproduced"]
    assert total(page) == len(part)
    page.fill("input[name=words]", "Sonar iterations")
    part = part[(part.dataset == "sonar") & (part.metric == "iterations")]
    assert total(page) == len(part) == page.locator(".scorecard-rows tbody tr").count()
    page.fill("input[name=words]", "")
    page.select_option("select[name=worth]", "can be decided")
    part = card[(card.source == "rc2024") & (card.table == "II") & (card.verdict == "reproduced") & card.decidable]
    assert 0 < total(page) == len(part)
    # another source forgets the table
    page.select_option("select[name=worth]", "all")
    page.select_option("select[name=verdict]", "all")
    page.select_option("select[name=source]", "rc2025")
    assert total(page) == (card.source == "rc2025").sum()
    page.select_option("select[name=source]", "all")
    assert total(page) == len(card)


def test_last_column_of_the_list_is_not_cut(list_of_numbers):
    list_of_numbers.set_viewport_size({"width": 1300, "height": 900})
    widths = list_of_numbers.locator(".scorecard-rows").evaluate("rows => [rows.scrollWidth, rows.clientWidth]")
    assert widths[0] <= widths[1]


def test_list_is_turned_by_keyboard(list_of_numbers):
    page = list_of_numbers
    first = page.locator(".scorecard-rows tbody tr").first.inner_text()
    assert page.locator("button[name=earlier]").is_disabled()
    page.focus("button[name=later]")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "scorecard-rows"
    assert page.locator(".scorecard-rows tbody tr").first.inner_text() != first
    page.focus("button[name=earlier]")
    page.keyboard.press("Enter")
    assert page.locator(".scorecard-rows tbody tr").first.inner_text() == first


def test_reasons_in_the_list_link_to_their_sections(list_of_numbers, card, html):
    page = list_of_numbers
    page.select_option("select[name=verdict]", "differs: explained")
    assert total(page) == (card.verdict == "differs: explained").sum()
    for address in page.locator(".scorecard-rows tbody a").evaluate_all("links => links.map(link => link.href)"):
        path, anchor = address.removeprefix("file://").split("#")
        assert f'id="{anchor}"' in Path(path).read_text(encoding="utf-8")
    page.select_option("select[name=verdict]", "all")


def test_without_javascript_the_file_is_offered(browser, html):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((html / CHAPTER).as_uri())
    assert not page.locator(".scorecard-filter").is_visible() and not page.locator(".scorecard-rows").is_visible()
    assert page.locator("noscript p").is_visible()
    assert page.locator("a[href$='scorecard.csv']").is_visible()
    assert page.locator("table.scorecard-reasons").first.is_visible()
    context.close()


def test_bibliography_is_labelled_as_the_text_cites(html):
    labels = [label.get_text() for label in soup(html / "book" / "bibliography.html").select(".citation .label")]
    assert len(labels) > 30 and all(re.fullmatch(r"\[.+, \d{4}[a-z]?\]", label) for label in labels)
