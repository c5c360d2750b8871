// Python, in a worker of the page: what it computes never freezes typing or scrolling, and a
// program that does not end can be stopped by ending the worker. Canvases are given to it as
// OffscreenCanvas, so that they are drawn by the GPUDevice that computes.

import { createHostPainter, createPainter } from "./canvas.js";
import { plainText } from "./plain_text.js";
import { mount, stored } from "./storage.js";

let python; // Pyodide
let run; // the runner's function
const answers = new Map(); // what the page was asked, by number
const painters = new Set(); // of the running program
const handles = new Map(); // open files of the storage, by URL: a file can be opened only once

// What a program prints goes to the page at once, until it prints much: a message for each line
// would then keep the page busy for minutes, so lines are gathered. They go before anything else
// that the program shows.
const AT_ONCE = 200, SECOND = 1000; // so many texts in a second
const BETWEEN_TEXTS = 50; // milliseconds, after these
const printed = { stream: "", text: "", at: 0, since: 0, count: 0, timer: null };

function sendText() {
  clearTimeout(printed.timer);
  const { stream, text } = printed;
  Object.assign(printed, { text: "", at: performance.now(), timer: null });
  if (text) self.postMessage({ kind: "text", stream, text });
}

function print(stream, text) {
  if (stream !== printed.stream) sendText();
  printed.stream = stream;
  printed.text += text;
  const now = performance.now();
  if (now - printed.since > SECOND) Object.assign(printed, { since: now, count: 0 });
  if (++printed.count <= AT_ONCE || now - printed.at > BETWEEN_TEXTS) sendText();
  else printed.timer ??= setTimeout(sendText, BETWEEN_TEXTS);
}

function post(kind, fields = {}) {
  sendText();
  self.postMessage({ kind, ...fields });
}

/** Ask the page for something; `answer` brings what it says. */
function ask(what, fields) {
  return new Promise((resolve) => {
    const number = answers.size ? Math.max(...answers.keys()) + 1 : 1;
    answers.set(number, resolve);
    post("ask", { number, what, ...fields });
  });
}

// What Python's module `playground` imports as `_playground`.
const bridge = {
  base: "", // where the page and its files lie
  post: (kind, fields) => post(kind, fields),
  ask: (what, fields) => ask(what, fields),
  nextFrame: () => new Promise((resolve) => self.requestAnimationFrame(resolve)),
  painter(helper, canvas) { // without a helper: for arrays in Python's memory
    const painter = helper ? createPainter(helper, canvas) : createHostPainter(canvas);
    painters.add(painter);
    return painter;
  },
  async store(url, path) {
    if (!handles.has(url)) {
      let last = 0;
      const progress = (done, total) => {
        if (done < total && done - last < 1 << 20) return; // a message for each MiB
        last = done;
        post("progress", { done, total });
      };
      handles.set(url, await stored(new URL(url, self.location.href).href, progress));
    }
    const { handle, fetched } = handles.get(url);
    mount(python, path, handle);
    return fetched;
  },
};

async function start({ config, runner, module }) {
  bridge.base = config.base;
  const pyodideURL = new URL(config.pyodide, config.base).href;
  post("status", { text: "Loading Python" });
  const { loadPyodide } = await import(`${pyodideURL}pyodide.mjs`);
  python = await loadPyodide({ indexURL: pyodideURL });
  python.setStdout({ write: written("out"), isatty: false });
  python.setStderr({ write: written("error"), isatty: false });
  post("status", { text: "Loading treadle" });
  const wheels = config.wheels.map((wheel) => new URL(wheel, config.base).href);
  await python.loadPackage(["numpy", ...wheels], { messageCallback: () => {} });
  python.registerJsModule("_playground", bridge);
  for (const [name, text] of Object.entries({ playground: module, playground_runner: runner })) {
    python.FS.writeFile(`/lib/python3.12/site-packages/${name}.py`, text);
  }
  run = python.pyimport("playground_runner");
  post("status", { text: "Opening the GPU" });
  const device = await run.open_device();
  post("ready", { device: JSON.parse(device) });
}

// Bytes, since a character may be split between two writes, and so may a terminal's code.
function written(stream) {
  const decoder = new TextDecoder(), plain = plainText();
  return (bytes) => {
    const text = plain(decoder.decode(bytes, { stream: true }));
    if (text) print(stream, text);
    return bytes.length;
  };
}

async function runProgram({ program }) {
  try {
    const outcome = await run.run(program);
    post("done", JSON.parse(outcome));
  } catch (error) { // of the page's own Python: a program's errors are an outcome
    post("done", { error: String(error), places: [] });
  } finally {
    painters.forEach((painter) => painter.destroy());
    painters.clear();
  }
}

const received = {
  start,
  run: runProgram,
  stop: () => run.stop(),
  event: ({ target, fields }) => run.event(target, JSON.stringify(fields)),
  answer({ number, value }) {
    answers.get(number)(value);
    answers.delete(number);
  },
};

self.addEventListener("message", async ({ data }) => {
  try {
    await received[data.kind](data);
  } catch (error) {
    post("failed", { error: String(error.message ?? error) });
  }
});
