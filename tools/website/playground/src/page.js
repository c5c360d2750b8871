// The playground's page: an editor, what the program shows, and the worker that runs it.

import { createEditor } from "./editor.js";
import { createOutput } from "./output.js";
import { createPython } from "./python.js";
import { asked, linkTo } from "./share.js";

const base = new URL(".", import.meta.url).href;

/** Set the page up in `root`, an element of playground/index.md; returns what takes it down. */
export async function start(root) {
  const part = (name) => root.querySelector(`[data-part=${name}]`);
  const [choice, runButton, stopButton, shareButton] = ["examples", "run", "stop", "share"].map(part);
  const fetched = (name) => fetch(new URL(name, base)).then((response) => response.ok ? response : Promise.reject(new Error(`${name}: ${response.status}`)));
  const [config, examples, runner, module] = await Promise.all([
    fetched("config.json").then((response) => response.json()),
    fetched("examples.json").then((response) => response.json()),
    fetched("playground_runner.py").then((response) => response.text()),
    fetched("playground.py").then((response) => response.text()),
  ]);

  const editor = createEditor(part("editor"), { run, changed: edited });
  const output = createOutput(part("output"), (target, fields) => python.send(target, fields));
  const status = (text) => { part("status").textContent = text; };
  let edit = 0; // counts edits, so that an outcome marks only the text that was run

  const python = createPython({ base, start: { config: { ...config, base }, runner, module } }, {
    ...output,
    status: ({ text }) => status(text),
    ready: ({ device }) => showDevice(device),
    failed: ({ error }) => {
      status("Not available");
      output.error(error);
    },
    ask: { canvas: output.canvas },
  });

  function showDevice(device) {
    status("Ready");
    part("device-name").textContent = device.name;
    part("device-facts").replaceChildren(...Object.entries(device.facts).flatMap(([name, value]) => {
      const [term, description] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, description.textContent] = [name, value];
      return [term, description];
    }));
    if (device.reason) output.note(device.reason);
  }

  async function run() {
    if (python.running) return;
    const text = editor.text, edition = edit;
    output.clear();
    editor.mark([]);
    [runButton.disabled, stopButton.disabled] = [true, false];
    root.dataset.state = "running";
    status("Running");
    part("output").scrollIntoView({ block: "nearest" }); // on a phone it lies below the editor
    const started = performance.now();
    const outcome = await python.run(text).catch(() => null); // shown by `failed`
    [runButton.disabled, stopButton.disabled] = [false, true];
    root.dataset.state = outcome?.error ? "failed" : "done";
    if (!outcome) return;
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if (outcome.error) {
      output.error(outcome.error);
      if (edition === edit) editor.mark(outcome.places);
    } else if (outcome.value) output.value(outcome.value);
    status(outcome.error ? "Error" : outcome.stopped ? "Stopped" : `Done in ${seconds} s`);
  }

  function show(name) {
    const example = examples.find((each) => each.name === name) ?? examples[0];
    choice.value = example.name;
    part("about").textContent = example.about;
    editor.text = example.program;
    output.clear();
    edit = 0; // an example as it came needs no question before it is replaced
  }

  function edited() {
    edit++;
  }

  async function share() {
    const link = await linkTo(editor.text);
    history.replaceState(history.state, "", link);
    // Refused in a page without focus, and absent where the page is not served securely.
    const copied = await navigator.clipboard?.writeText(link).then(() => true, () => false);
    status(copied ? "Link copied" : "The link is in the address bar");
  }

  async function open() {
    try {
      const { program, example } = await asked();
      if (program === undefined) return show(example);
      show();
      choice.value = "";
      part("about").textContent = "A program from a link: read it before you run it.";
      editor.text = program;
    } catch (error) {
      show();
      output.error(error.message);
    }
  }

  if (config.notebooks) {
    const links = Object.entries(config.notebooks).map(([title, address]) => {
      const link = document.createElement("a");
      [link.textContent, link.href] = [title, new URL(address, base).href];
      return link;
    });
    part("notebooks").append("The same in a notebook: ", ...links.flatMap((link, i) => i ? [", ", link] : [link]));
  }
  choice.replaceChildren(...examples.map(({ name, title }) => new Option(title, name)));
  choice.addEventListener("change", () => {
    python.stop();
    history.replaceState(history.state, "", `#example=${choice.value}`);
    show(choice.value);
  });
  runButton.addEventListener("click", run);
  stopButton.addEventListener("click", () => python.stop());
  shareButton.addEventListener("click", share);
  window.addEventListener("hashchange", open);
  await open();
  runButton.disabled = false;
  root.dataset.state = "ready";

  return () => {
    window.removeEventListener("hashchange", open);
    python.terminate();
    editor.destroy();
  };
}
