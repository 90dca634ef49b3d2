"""The stored results as a Research Object Crate: which code, data and packages made each table.

RO-Crate 1.1 with an action for every file of cells: its result is the file, its
instruments the commits of the code and the versions of Python and packages that the cells have stored, its objects the
registry of data sets and those sets in it that the table gives by their registered names (a source that prints another
name is not guessed at). `archive` writes it beside the results.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from rcbook import citation
from rcbook.experiments import results
from rcbook.experiments.store import read

ROOT = Path(__file__).resolve().parents[2]
TYPES = {".csv": "text/csv", ".jsonl": "application/jsonl", ".json": "application/json"}
REGISTRY = "data/datasets.csv"
Entity = dict[str, Any]


def refer(names: set[str]) -> list[Entity]:
    """References to entities, in order."""
    return [{"@id": name} for name in sorted(names)]


def file_entity(path: Path, name: str) -> Entity:
    """A file by its size and checksum."""
    content = path.read_bytes()
    return {
        "@id": name,
        "@type": "File",
        "name": path.name,
        "encodingFormat": TYPES.get(path.suffix, "text/plain"),
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def software(name: str, version: str) -> Entity:
    """A package, or the interpreter, in one version."""
    return {"@id": f"#{name}-{version}", "@type": "SoftwareApplication", "name": name, "version": version}


def code(provenance: dict[str, Any]) -> Entity:
    """The library and the studies at one commit; a changed working tree is said to be one."""
    commit, modified = provenance["commit"], provenance.get("modified")
    return {
        "@id": f"#commit-{commit}" + ("-modified" if modified else ""),
        "@type": "SoftwareSourceCode",
        "name": "rcpkg and rcbook" + (", with changes that were not committed" if modified else ""),
        "version": ", ".join([*([provenance["rcpkg"]] if "rcpkg" in provenance else []), f"commit {commit}"]),
        "programmingLanguage": "Python",
    }


def instruments(provenance: dict[str, Any]) -> Iterator[Entity]:
    """What computed a cell."""
    yield code(provenance)
    if "python" in provenance:  # what is carried over from before studies kept it does not say
        yield software("python", provenance["python"])
    for name, version in provenance["packages"].items():
        yield software(name, version)


def data_sets() -> dict[str, Entity]:
    """The registered data sets by name; the files themselves are fetched from where they were published."""
    table = pd.read_csv(ROOT / REGISTRY, dtype=str, keep_default_na=False)
    return {
        str(name): {
            "@id": f"#data-{name}",
            "@type": "Dataset",
            "name": name,
            "license": rows["licence"].iloc[0],
            "citation": rows["citation"].iloc[0],
            "identifier": [f"sha256:{checksum}" for checksum in rows["sha256"] if checksum],
        }
        for name, rows in table.groupby("name", sort=True)
    }


def named_sets(source: str, table: str) -> set[str]:
    """What the column of data sets of a table names, as the registry spells names."""
    column = results(source, table).get("dataset", pd.Series(dtype=str)).unique()
    return {re.sub(r"[ -]", "_", part.strip().lower()) for entry in column for part in re.split(r"[:/,]", entry)}


def action(path: Path, known: dict[str, Entity], entities: dict[str, Entity]) -> Entity:
    """How the cells of a file were computed; the software and the data sets are entered into `entities`."""
    made_by = {json.dumps(done.provenance): done.provenance for done in read(path)}
    software_used = [entity for provenance in made_by.values() for entity in instruments(provenance)]
    sets_used = [known[name] for name in named_sets(*path.stem.split("_table_")) & known.keys()]
    entities |= {entity["@id"]: entity for entity in (*software_used, *sets_used)}
    return {
        "@id": f"#run-{path.stem}",
        "@type": "CreateAction",
        "name": f"Computation of {path.stem.replace('_table_', ', ')}",
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
        "instrument": refer({entity["@id"] for entity in software_used}),
        "object": refer({REGISTRY, *(entity["@id"] for entity in sets_used)}),
        "result": refer({f"data/results/{path.name}"}),
    }


def crate(files: list[str]) -> Entity:
    """The crate of the stored results among the files of the repository, given by their paths from its root."""
    entry = citation.citation()
    stored = [REGISTRY, *sorted(name for name in files if name.startswith("data/results/"))]
    entities: dict[str, Entity] = {}
    known = data_sets()
    actions = [action(ROOT / name, known, entities) for name in stored if name.endswith(".jsonl")]
    licences = {f"https://spdx.org/licenses/{name}": name for name in entry["license"]}
    authors = {f"#author-{number}": name for number, name in enumerate(citation.authors(entry), start=1)}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Stored results of: {entry['title']}",
        "description": entry["abstract"],
        "version": entry["version"],
        "datePublished": str(entry["date-released"]),
        "license": refer(set(licences)),
        "author": refer(set(authors)),
        "hasPart": refer(set(stored)),
        "mentions": [{"@id": run["@id"]} for run in actions],
    }
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    graph = [about, root]
    graph += [{"@id": key, "@type": "CreativeWork", "name": name} for key, name in licences.items()]
    graph += [{"@id": key, "@type": "Organization", "name": name} for key, name in authors.items()]
    graph += [file_entity(ROOT / name, name) for name in stored]
    graph += [*actions, *(entities[key] for key in sorted(entities))]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
