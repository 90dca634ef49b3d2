"use strict";
/* Python for the live cells of a page: Pyodide, from the files that `make live` puts beside this one. It is told
   {packages} once, then {cells: [{id, source}], before: [source, ...]}; it answers {loaded} in bytes, {running: id} and
   {id, output, error}. The page stops it by ending the worker. */
const arrive = self.fetch;
let loaded = 0;
self.fetch = async (...request) => {
  const response = await arrive(...request);
  if (!response.ok || !response.body) return response;
  const count = new TransformStream({
    transform(chunk, out) { postMessage({loaded: loaded += chunk.byteLength}); out.enqueue(chunk); },
  });
  return new Response(response.body.pipeThrough(count), response);
};

async function begin(packages) {
  importScripts("live/pyodide.js");
  const python = await loadPyodide({indexURL: new URL("live/", self.location).href});
  await python.loadPackage(packages, {messageCallback() {}});
  const book = await (await fetch("live/book.zip")).arrayBuffer();
  python.unpackArchive(book, "zip", {extractDir: "/book"});
  await python.runPythonAsync(`
import os, sys
sys.path[:0] = ["/book", "/book/book"]
os.environ["MPLBACKEND"] = "agg"
os.chdir("/book/chapters")
import matplotlib.font_manager  # which says on stderr that it makes a list of fonts
`);
  python.globals.set("__name__", "__main__");
  return python.runPython(`
import json
from rcbook import live
names = {"__name__": "__main__"}
def run(id, source):
    output, error = live.run(source, names, id)
    return json.dumps({"id": id, "output": output, "error": error})
run, lambda sources, source: json.dumps(live.needed(json.loads(sources), source))
`);
}

let python = null;
onmessage = async ({data}) => {
  if (data.packages) {
    python = begin(data.packages);
    return;
  }
  try {
    const [run, needed] = await python;
    let cells = data.cells;
    if (data.choose) {  // of the cells before the last run only those that make names which it needs
      const last = cells.pop(), sources = JSON.stringify(data.choose.map((cell) => cell.source));
      cells = [...JSON.parse(needed(sources, last.source)).map((k) => data.choose[k]).filter((cell) => !cell.done), last];
    }
    for (const {id, source} of cells) {
      postMessage({running: id});
      const result = JSON.parse(run(id, source));
      postMessage(result);
      if (result.error.length) break;
    }
    postMessage({idle: true});
  } catch (error) {
    postMessage({failed: String(error)});
  }
};
