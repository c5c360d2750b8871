// A box to draw in with the pointer, a finger or the keyboard. The program gets it as a small
// picture: what was drawn, scaled and moved to the middle as the training pictures are.

const resolution = 20; // drawn pixels for one of the small picture

/** A box in `figure`; `drawn` is called with the values of `size` by `size` pixels, from 0 to 1. */
export function createSketch(figure, size, title, drawn) {
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size * resolution;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title}: press and move the pointer, or press Enter and the arrow keys`);
  const clear = document.createElement("button");
  clear.type = "button";
  clear.className = "md-button";
  clear.textContent = "Clear";
  const said = document.createElement("output");
  said.setAttribute("aria-live", "polite");
  figure.replaceChildren(caption, canvas, said, clear);

  const pen = canvas.getContext("2d", { willReadFrequently: true });
  Object.assign(pen, { lineWidth: 1.3 * resolution, lineCap: "round", lineJoin: "round", strokeStyle: "#000" });

  function line(from, to) {
    pen.beginPath();
    pen.moveTo(...from);
    pen.lineTo(...to);
    pen.stroke();
  }
  const tell = () => {
    const pixels = small(canvas, pen, size);
    if (pixels) drawn(pixels);
  };

  let last = null;
  const place = ({ clientX, clientY }) => {
    const box = canvas.getBoundingClientRect();
    return [((clientX - box.left) / box.width) * canvas.width, ((clientY - box.top) / box.height) * canvas.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    line(last, last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    line(last, (last = place(event)));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => {
      last = null;
      tell();
    });
  }

  let at = [canvas.width / 2, canvas.height / 4], pressed = false;
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      pressed = !pressed;
      if (!pressed) tell();
    } else if (steps[event.key]) {
      const next = at.map((value, i) => Math.min(Math.max(value + steps[event.key][i] * resolution, 0), canvas.width));
      if (pressed) line(at, next);
      at = next;
    } else return;
    event.preventDefault();
  });

  clear.addEventListener("click", () => {
    pen.clearRect(0, 0, canvas.width, canvas.height);
    said.textContent = "";
    canvas.focus();
  });
  return { say: (text) => { said.textContent = text; } };
}

// The drawing, cut out and scaled so that its longer side fills the small picture.
function small(canvas, pen, size) {
  const { data, width, height } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let [x0, y0, x1, y1] = [width, height, -1, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (!data[4 * (y * width + x) + 3]) continue;
      x0 = Math.min(x0, x); x1 = Math.max(x1, x);
      y0 = Math.min(y0, y); y1 = Math.max(y1, y);
    }
  }
  if (x1 < 0) return null; // nothing is drawn
  const side = Math.max(x1 - x0, y1 - y0) + 1;
  const left = (x0 + x1 + 1 - side) / 2, top = (y0 + y1 + 1 - side) / 2;
  const cell = side / size;
  return Array.from({ length: size * size }, (_, i) => {
    const [cx, cy] = [left + (i % size) * cell, top + Math.floor(i / size) * cell];
    let sum = 0, count = 0;
    for (let y = Math.floor(cy); y < cy + cell; y++) {
      for (let x = Math.floor(cx); x < cx + cell; x++) {
        count++;
        if (x >= 0 && y >= 0 && x < width && y < height) sum += data[4 * (y * width + x) + 3];
      }
    }
    return sum / count / 255;
  });
}
