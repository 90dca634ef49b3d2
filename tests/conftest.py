"""How parallel workers share the tests, and which tests wait for the public data sets."""

import os

import pytest

NO_DATA = pytest.mark.skipif("RCPKG_DATA" not in os.environ, reason="RCPKG_DATA names no folder of the data sets")


def pytest_collection_modifyitems(items):
    """A file goes to one worker, but of the pages of the book each to any; what needs the data sets is skipped."""
    for item in items:
        page = item.callspec.params.get("page", "") if hasattr(item, "callspec") else ""
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {page}"))
        if item.get_closest_marker("needs_data"):
            item.add_marker(NO_DATA)
