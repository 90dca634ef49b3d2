"""The style ``author_year`` of the bibliography: entries are labelled as the text cites them, "Pérez et al. [2025]"."""

from collections.abc import Iterator
from string import ascii_lowercase

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx


class AuthorYearLabels(BaseLabelStyle):
    """``Pérez et al., 2025``; entries with the same get a letter."""

    def format_labels(self, sorted_entries: list[Entry]) -> Iterator[str]:
        labels = [label(entry) for entry in sorted_entries]
        for position, found in enumerate(labels):
            alike = labels[:position].count(found)
            yield found + (ascii_lowercase[alike] if labels.count(found) > 1 else "")


def label(entry: Entry) -> str:
    """Last names of one or two authors, of more the first only; and the year."""
    people = entry.persons.get("author") or entry.persons["editor"]
    names = [" ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in people]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {entry.fields['year']}"


class AuthorYearStyle(PlainStyle):
    default_label_style = AuthorYearLabels


def setup(app: Sphinx) -> dict[str, bool]:
    register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
