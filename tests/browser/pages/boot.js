// Python in a window or in a worker: `boot` loads Pyodide with packages, `runPython` runs code.
"use strict";

let pyodide;
let toJson;

async function boot({ stackSwitching, packages, wheels }) {
  if (!stackSwitching) {
    // As in a browser that has none.
    delete WebAssembly.Suspending;
    delete WebAssembly.promising;
    delete WebAssembly.Suspender;
  }
  if (typeof loadPyodide === "undefined") {
    importScripts("/pyodide/pyodide.js");
  }
  globalThis.printed = [];
  const print = (line) => globalThis.printed.push(line);
  pyodide = await loadPyodide({ indexURL: "/pyodide/", stdout: print, stderr: print });
  globalThis.pyodide = pyodide;
  const quiet = { messageCallback: () => {} };
  await pyodide.loadPackage([...packages, ...wheels], quiet);
  toJson = pyodide.runPython("import json; json.dumps");
}

// What the last expression of some Python code is, as JSON, or the traceback of its error.
async function runPython(code, filename) {
  const globals = pyodide.toPy({ __name__: "__main__" });
  try {
    const value = await pyodide.runPythonAsync(code, { globals, filename });
    const json = toJson(value ?? null);
    value?.destroy?.();
    return { json };
  } catch (error) {
    return { error: String(error.message ?? error) };
  } finally {
    globals.destroy();
  }
}
