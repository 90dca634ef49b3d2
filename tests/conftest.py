"""How parallel workers share the tests; which of them are slow or need the public data sets."""

import os

import pytest

NO_DATA = pytest.mark.skipif("RCPKG_DATA" not in os.environ, reason="RCPKG_DATA names no folder of the data sets")
# the files that take longest, in this order: what begins early does not keep one worker when the others are done
LONGEST = ("planted_errors", "experiments", "datasets", "local", "estimators", "conditional", "predictive")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items):
    """A file goes to one worker, but of the pages of the book each to any. What needs a browser is slow.

    One page comes first, whose worker builds the book while the others run what needs none of it; all other pages last.
    """
    group_of, of_book = {}, []
    for item in items:
        page = item.callspec.params.get("page", "") if hasattr(item, "callspec") else ""
        group_of[item] = f"{item.path.name} {page}"
        item.add_marker(pytest.mark.xdist_group(group_of[item]))
        if "html" in item.fixturenames:
            of_book.append(group_of[item])
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("needs_data"):
            item.add_marker(NO_DATA)

    def place(item):
        if group_of[item] in of_book:
            return 0 if group_of[item] == of_book[0] else len(LONGEST) + 2
        name = item.path.stem.removeprefix("test_")
        return 1 + (LONGEST.index(name) if name in LONGEST else len(LONGEST))

    items.sort(key=place)
