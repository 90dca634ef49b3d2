"""How parallel workers share the tests, and which tests wait for the public data sets."""

import os

import pytest

NO_DATA = pytest.mark.skipif("RCPKG_DATA" not in os.environ, reason="RCPKG_DATA names no folder of the data sets")


def pytest_collection_modifyitems(items):
    """A file goes to one worker, but of the pages of the book each to any; what needs the data sets is skipped.

    One page comes first, whose worker builds the book while the others run what needs none of it; all other pages last.
    """
    group_of, of_book = {}, []
    for item in items:
        page = item.callspec.params.get("page", "") if hasattr(item, "callspec") else ""
        group_of[item] = f"{item.path.name} {page}"
        item.add_marker(pytest.mark.xdist_group(group_of[item]))
        if "html" in item.fixturenames:
            of_book.append(group_of[item])
        if item.get_closest_marker("needs_data"):
            item.add_marker(NO_DATA)
    items.sort(key=lambda item: 0 if group_of[item] in of_book[:1] else 2 if group_of[item] in of_book else 1)
