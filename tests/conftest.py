"""How parallel workers share the tests; which of them are slow or need the public data sets."""

import gc
import os
from pathlib import Path

import pytest

NO_DATA = pytest.mark.skipif("RCPKG_DATA" not in os.environ, reason="RCPKG_DATA names no folder of the data sets")
# the files that take longest, in this order: what begins early does not keep one worker when the others are done
LONGEST = ("planted_errors", "experiments", "datasets", "local", "table", "estimators", "optimum", "conditional")


# of these a page or chapter of the book goes to one worker, of all others the whole file: what it holds is made once
OF_PAGES = {"test_html", "test_planted_errors"}
# these make the scorecard of all results, and go to one worker
OF_RESULTS = {"test_experiments", "test_pages", "test_reference", "test_scorecard"}

gc.disable()  # what is collected stays, see below


def together(nodeid: str) -> str:
    """What the tests of one worker have in common: the file and, where a page of the book is tried, the page."""
    path, _, name = nodeid.partition("::")
    if Path(path).stem in OF_RESULTS:
        return "results"
    page = name.partition("[")[2].rstrip("]").partition("-")[0] if Path(path).stem in OF_PAGES else ""
    return f"{path} {page}"


@pytest.fixture
def ax():
    """Axes of a figure that is closed afterwards."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadscope`` the tests are shared out by `together`."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid)

    return Together(config, log)


def pytest_ignore_collect(collection_path, config):
    """In the quick tests a module is not imported if all that it has is slow."""
    if config.option.markexpr == "not slow" and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text("utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test of data sets, with the reason, where one that no address gives is missing."""
    try:
        return (yield)
    except Exception as error:
        if item.get_closest_marker("needs_data") and type(error).__name__ == "DataNotAvailable":
            pytest.skip(str(error))
        raise


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items):
    """What needs the rendered book is slow.

    One page of the book comes first, whose worker builds it while the others run what needs none of it; all other
    pages last.
    """
    first = next((together(item.nodeid) for item in items if "html" in item.fixturenames), None)

    def place(item):
        if "html" in item.fixturenames:
            return 0 if together(item.nodeid) == first else len(LONGEST) + 2
        name = item.path.stem.removeprefix("test_")
        return 1 + (LONGEST.index(name) if name in LONGEST else len(LONGEST))

    for item in items:
        if "html" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("needs_data"):
            item.add_marker(NO_DATA)
    items.sort(key=place)


def pytest_collection_finish():
    """What modules hold stays until the end: the garbage collector need not go through it again and again."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Nor what caches hold after a file, such as the cells of all studies."""
    if nextitem is None or nextitem.path != item.path:
        gc.freeze()
