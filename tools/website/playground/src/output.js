// What a program shows, in the order in which it does: text, errors, canvases, charts, boxes.

import { createChart } from "./chart.js";
import { createSketch } from "./sketch.js";
import { showText } from "./editor.js";

const MOST_TEXT = 1 << 18; // characters of one text that are shown: its end

/** Shows into `element`; `send(target, fields)` takes events to the program. */
export function createOutput(element, send) {
  let progress;
  const charts = new Map(), sketches = new Map(); // of the running program, by its numbers

  function append(tag, className, text = "") {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    follow(() => element.append(made));
    return made;
  }

  // Scroll to what is added, unless the reader scrolled back.
  function follow(add) {
    const following = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    add();
    if (following) element.scrollTop = element.scrollHeight;
  }

  // Only the end of a long text: a page with millions of lines does not answer any more.
  function extend(shown, text) {
    const length = shown.textContent.length + text.length;
    if (length <= 2 * MOST_TEXT) shown.append(text);
    else shown.textContent = `… earlier text is left out\n${(shown.textContent + text).slice(-MOST_TEXT)}`;
  }

  return {
    clear() {
      element.replaceChildren();
      progress = undefined;
      charts.clear();
      sketches.clear();
    },
    text({ stream, text }) {
      const last = element.lastElementChild;
      const className = `playground-text playground-text--${stream}`;
      if (last?.className === className) follow(() => extend(last, text));
      else append("pre", className, text);
    },
    value: (text) => append("pre", "playground-text playground-text--value", text),
    error: (text) => append("pre", "playground-text playground-text--error", text).setAttribute("role", "alert"),
    note: (text) => append("p", "playground-note", text),
    progress({ done, total }) {
      progress ??= append("p", "playground-progress");
      const bar = progress.querySelector("progress") ?? document.createElement("progress");
      if (total) bar.setAttribute("max", total);
      if (total) bar.value = done;
      const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
      const label = total ? `${megabytes(done)} of ${megabytes(total)} MB` : `${megabytes(done)} MB`;
      bar.setAttribute("aria-label", "Download");
      progress.replaceChildren(bar, ` ${label}`);
      if (done === total) progress = undefined; // the next download has its own bar
    },
    chart: ({ target, title, log }) => {
      const chart = createChart(append("figure", "playground-chart"), title, log);
      charts.set(target, chart);
    },
    point: ({ target, value }) => charts.get(target)?.add(value),
    sketch: ({ target, size, title }) => {
      sketches.set(target, createSketch(append("figure", "playground-sketch"), size, title, (pixels) => send(target, { pixels })));
    },
    say: ({ target, text }) => sketches.get(target)?.say(text),
    columns({ texts }) {
      const row = append("div", "playground-columns");
      for (const [title, text] of texts) {
        const column = document.createElement("section");
        const heading = document.createElement("h4");
        heading.textContent = title;
        column.append(heading);
        row.append(column);
        showText(column, text.trim(), "cpp");
      }
    },
    /** A canvas for the worker; pointer events go to the program in fractions of its size. */
    canvas({ target, width, height }) {
      const canvas = append("canvas", "playground-canvas");
      Object.assign(canvas, { width, height, tabIndex: 0 });
      canvas.setAttribute("aria-label", "Picture drawn by the program. Press and move the pointer, or press Enter and the arrow keys, to touch it.");
      canvas.setAttribute("role", "img");
      canvas.scrollIntoView({ block: "nearest" });
      steer(canvas, (at) => send(target, { at }));
      const surface = canvas.transferControlToOffscreen();
      return { value: surface, transfer: [surface] };
    },
  };
}

function steer(canvas, moved) {
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    moved(place(event));
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && moved(place(event)));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => moved(null));

  // The keyboard's pointer: Enter presses it or lets it go, arrow keys move it.
  let at = [0.5, 0.5], pressed = false;
  const steps = { ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0], ArrowUp: [0, -0.05], ArrowDown: [0, 0.05] };
  canvas.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (event.key === "Enter") pressed = !pressed;
    else if (step) at = at.map((value, i) => Math.min(Math.max(value + step[i], 0), 0.999));
    else return;
    event.preventDefault();
    moved(pressed ? at : null);
  });
  canvas.addEventListener("blur", () => {
    if (pressed) moved(null);
    pressed = false;
  });
}
