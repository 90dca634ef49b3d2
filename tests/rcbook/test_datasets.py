"""rcbook.datasets: the registry, what each variant holds, and downloading under every kind of failure."""

import gzip
import hashlib
import re
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from model_cases import refused
from rcbook import datasets, published
from rcbook.__main__ import main
from rcbook.datasets import CorruptDataFile, DataFile, DataNotAvailable, files
from sklearn import datasets as bundled

VARIANTS = datasets.table()


# Registry -----------------------------------------------------------------------------------------


def test_registry_is_complete():
    assert len(datasets.names()) == 84
    items = datasets.registry()
    assert len({item.file for item in items}) == len(items)
    for item in items:
        assert item.file.startswith(f"{item.name}/")
        assert re.fullmatch("[0-9a-f]{64}", item.sha256), item.file
        address = re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/\S+", item.url)
        assert address or (not item.url and "must be provided" in item.notes), item.file
        assert bool(item.transform) == bool(item.sha256_used), item.file
        assert item.licence and item.citation and item.page, item.file


def test_every_data_set_has_its_original_and_every_file_is_used():
    assert VARIANTS.name[VARIANTS.variant == "original"].tolist() == datasets.names()
    raw = datasets._variants()
    used = {f"{name}/{file}" for name, files in zip(raw.name, raw.files) for file in re.split(r"[|+]", files)}
    assert {item.file for item in datasets.registry()} - used == {"segment/segment.csv"}


STATED = VARIANTS[VARIANTS.stated_in != ""]


@pytest.mark.parametrize("row", list(STATED.itertuples()), ids=lambda row: f"{row.name}-{row.variant}")
def test_stated_sizes_are_those_of_the_source(row):
    """The stated n and d are the printed ones, and a variant that differs from them says why."""
    source, number, label = (
        row.stated_in.split(":") if row.stated_in.count(":") == 2 else (*row.stated_in.split(":"), "")
    )
    cells = published.table(source, number)
    registered = datasets._variants()
    registered = registered[(registered.name == row.name) & (registered.variant == row.variant)].iloc[0]
    stated = (int(registered.stated_rows), int(registered.stated_features))
    if source == "thesis2007":
        printed = (cells.n_instances.iloc[0], cells.n_features.iloc[0])
    else:
        value = cells[cells.dataset == label].set_index("metric").value
        if source == "wanbia2014":
            printed = (value["cases"], value["attributes"] - 1)
        else:
            printed = (value["m_instances"], value["n_variables"])
    assert printed == stated
    assert stated == (row.n_rows, row.n_features) or row.note


def test_each_tabular_set_of_the_rc_papers_has_its_variant():
    images = {"catsvsdogs", "cifar10", "fashion mnist", "mnist", "yearbook"}
    for variant, number in (("rc2024", "I"), ("rc2025", "2")):
        printed = set(published.table(variant, number).dataset) - images
        here = STATED.stated_in[STATED.variant == variant].str.split(":").str[2]
        assert set(here) == printed


# Content ------------------------------------------------------------------------------------------


# variants made of the same files by the same rules are loaded once
FILES = datasets._variants().query("name != '*'").files.reset_index(drop=True)
MANY_NUMBERS = 100_000
DIFFERENT = VARIANTS[~VARIANTS.assign(files=FILES).duplicated(["name", "files", "rules"])]


def test_variants_made_alike_are_registered_alike():
    sizes = VARIANTS.assign(files=FILES).groupby(["name", "files", "rules"])[["n_rows", "n_features", "n_classes"]]
    assert (sizes.nunique() == 1).all(axis=None)


def sized(row):
    """A set of many numbers, which takes seconds to read, is left to the slow suite."""
    large = row.n_rows * row.n_features > MANY_NUMBERS
    return pytest.param(row, id=f"{row.name}-{row.variant}", marks=pytest.mark.slow if large else ())


@pytest.mark.needs_data
@pytest.mark.parametrize("row", [sized(row) for row in DIFFERENT.itertuples()])
def test_load_gives_the_registered_size(row):
    bunch = datasets.load(row.name, row.variant)
    assert bunch.data.dtype == float
    assert (*bunch.data.shape, len(bunch.target_names)) == (row.n_rows, row.n_features, row.n_classes)
    assert bunch.target.shape == bunch.part.shape == (row.n_rows,)
    assert len(bunch.feature_names) == len(bunch.nominal) == row.n_features
    assert "Licence" in bunch.DESCR and row.citation in bunch.DESCR
    if row.variant in ("rc2024", "rc2025"):
        assert np.isfinite(bunch.data).all()


@pytest.mark.needs_data
def test_same_numbers_as_the_sets_bundled_with_scikit_learn():
    digits = datasets.load("optdigits")
    test = digits.part == "test"
    np.testing.assert_array_equal(digits.data[test], bundled.load_digits().data)
    np.testing.assert_array_equal(digits.target[test], bundled.load_digits().target)
    wine = datasets.load("wine")
    np.testing.assert_allclose(wine.data, bundled.load_wine().data)
    np.testing.assert_array_equal(wine.target - 1, bundled.load_wine().target)
    # the UCI copy of iris differs from Fisher's table in rows 35 and 38, which scikit-learn corrects
    changed = np.any(datasets.load("iris").data != bundled.load_iris().data, axis=1)
    assert np.flatnonzero(changed).tolist() == [34, 37]


def test_unknown_names_are_refused():
    refused(r"name must be that of a data set; got 'irises' \(near to it: iris\)", datasets.load, "irises")
    refused(r"got 'q': `rcbook.datasets.names\(\)` and .* have all 84", datasets.fetch, ["q"])
    refused("must be one of original, rc2024", datasets.load, "iris", "rc2023")


# Files on this machine ----------------------------------------------------------------------------

CONTENT = b"1,2,a\n3,4,b\n" * 5000


def item_for(url="http://127.0.0.1:9/file", content=CONTENT, **other):
    return DataFile("toy", "toy/toy.data", url, hashlib.sha256(content).hexdigest(), **other)


def put(folder, content, name="toy/toy.data"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """No data folder and an empty cache."""
    monkeypatch.delenv("RCPKG_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


@pytest.mark.parametrize("compressed", [False, True])
def test_folder_named_by_the_environment_comes_first(tmp_path, empty_home, monkeypatch, compressed):
    monkeypatch.setenv("RCPKG_DATA", str(tmp_path / "raw"))
    put(empty_home, b"wrong")
    if compressed:
        put(tmp_path / "raw", gzip.compress(CONTENT), "toy/toy.data.gz")
    else:
        put(tmp_path / "raw", CONTENT)
    assert files.content_of(item_for()) == CONTENT


def test_a_file_without_an_address_must_be_provided(empty_home, monkeypatch):
    provided = item_for(url="")
    with pytest.raises(DataNotAvailable, match="no single download gives its bytes"):
        files.content_of(provided)
    monkeypatch.setattr(files, "registry", lambda: (provided,))
    with pytest.raises(DataNotAvailable, match="RCPKG_DATA"):
        datasets.fetch(["toy"])
    with pytest.warns(UserWarning, match="no single download"):
        assert datasets.fetch() == []


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("raw/toy/toy.data", CONTENT[:-1], "replace it, or delete it"),
        ("raw/toy/toy.data", b"", "replace it, or delete it"),
        ("raw/toy/toy.data", CONTENT + b"x", "replace it, or delete it"),
        ("raw/toy/toy.data.gz", gzip.compress(CONTENT)[:-10], "not a complete gzip file"),
        ("cache/toy/toy.data", CONTENT[:100], "delete it to have it downloaded"),
    ],
    ids=["truncated", "empty", "longer", "truncated gzip", "in the cache"],
)
def test_wrong_file_is_refused_with_file_both_hashes_and_remedy(
    tmp_path, empty_home, monkeypatch, name, content, says
):
    monkeypatch.setenv("RCPKG_DATA", str(tmp_path / "raw"))
    path = put(tmp_path, content, name)
    with pytest.raises(CorruptDataFile, match=says) as caught:
        files.content_of(item_for())
    said = [str(path)] if path.suffix == ".gz" else [str(path), item_for().sha256, hashlib.sha256(content).hexdigest()]
    assert [part for part in said if part not in str(caught.value)] == []


# Downloading --------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """One address for each kind of server behaviour."""

    def do_GET(self):
        kind = self.path.strip("/")
        self.server.requests.append(kind)
        if kind == "404":
            self.send_error(404)
            return
        body = {"wrong": b"something else", "header": b"names\n" + CONTENT}.get(kind, CONTENT)
        self.send_response(200)
        if kind != "truncated":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            if kind == "truncated":
                self.wfile.write(body[: len(body) // 2])
            elif kind == "stalled":
                self.wfile.write(body[:100])
                self.wfile.flush()
                self.server.release.wait(20)
            else:
                self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client gave up, which is what some tests are about

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.requests, httpd.release = [], threading.Event()
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        httpd.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        yield httpd
        httpd.release.set()
        httpd.shutdown()
        thread.join()


def test_download_once_then_from_the_cache(server, empty_home):
    item = item_for(f"{server.url}/good")
    assert files.content_of(item) == CONTENT
    assert files.content_of(item) == CONTENT
    assert server.requests == ["good"]
    assert leftovers(empty_home) == [empty_home / "toy/toy.data"]


def test_registered_transformation(server, empty_home):
    served = b"names\n" + CONTENT
    item = item_for(f"{server.url}/header", served, transform="drop_first_line")
    item = replace(item, sha256_used=hashlib.sha256(CONTENT).hexdigest())
    assert files.content_of(item) == CONTENT
    assert (empty_home / "toy/toy.data").read_bytes() == served
    assert files.content_of(item) == CONTENT
    put(empty_home, CONTENT)  # what a folder that is given holds, too
    assert files.content_of(item) == CONTENT and server.requests == ["header"]


@pytest.mark.parametrize(
    "kind, error, message",
    [
        ("truncated", CorruptDataFile, "Nothing was kept"),
        ("wrong", CorruptDataFile, "Nothing was kept"),
        ("404", DataNotAvailable, "HTTPError"),
        ("stalled", DataNotAvailable, "could not be downloaded"),
    ],
)
def test_failed_download_raises_and_leaves_nothing(server, empty_home, kind, error, message):
    with pytest.raises(error, match=message):
        datasets.download(item_for(f"{server.url}/{kind}"), empty_home, timeout=0.3)
    assert leftovers(empty_home) == []


def test_neither_network_nor_data_is_one_clear_sentence(empty_home):
    with pytest.raises(DataNotAvailable) as caught:
        files.content_of(item_for())
    message = str(caught.value)
    assert "\n" not in message
    for part in ("toy", "not on this machine", "python -m rcbook fetch toy", "RCPKG_DATA"):
        assert part in message


def test_fetch_from_the_command_line(server, empty_home, monkeypatch, capsys):
    monkeypatch.setattr(files, "registry", lambda: (item_for(f"{server.url}/good"),))
    assert main(["fetch", "toy"]) == 0
    captured = capsys.readouterr()
    assert "toy" in captured.out and "100%" in captured.err
    assert files.content_of(item_for()) == CONTENT
    assert main(["fetch", "other"]) == 2
    assert "got 'other'" in capsys.readouterr().err


def test_fetch_without_network_ends_with_one_sentence(empty_home, monkeypatch, capsys):
    monkeypatch.setattr(files, "registry", lambda: (item_for(),))
    assert main(["fetch"]) == 1
    error = [line for line in capsys.readouterr().err.splitlines() if "could not be downloaded" in line]
    assert len(error) == 1 and "Traceback" not in error[0]
