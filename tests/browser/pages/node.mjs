// Runs Python in Node, whose WebGPU is the package "webgpu" (Dawn):
//
//     node node.mjs FOLDER_OF_NODE_MODULES FOLDER_OF_PYODIDE NUMPY WHEEL... < program.py
import fs from "node:fs";
import { createRequire } from "node:module";

const [modules, pyodide, numpy, ...wheels] = process.argv.slice(2);
const { create, globals } = createRequire(`${modules}/`)("webgpu");
Object.assign(globalThis, globals);
// Pyodide asks for a name of the browser.
const navigator = { userAgent: "node", gpu: create([]) };
Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });

const { loadPyodide } = await import(`${pyodide}/pyodide.mjs`);
const python = await loadPyodide();
await python.loadPackage(numpy, { messageCallback() {} });
for (const wheel of wheels) {
  python.unpackArchive(new Uint8Array(fs.readFileSync(wheel)).buffer, "wheel");
}
let status = 0;
try {
  await python.runPythonAsync(fs.readFileSync(0, "utf8"));
} catch (error) {
  console.error(error.message);
  status = 1;
}
process.exit(status); // the device would keep Node alive
