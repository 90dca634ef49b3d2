"""How parallel workers share the tests: a file goes to one worker, but of the pages of the book each to any."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        page = item.callspec.params.get("page", "") if hasattr(item, "callspec") else ""
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {page}"))
