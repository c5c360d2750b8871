// A curve that grows, as SVG in the theme's colours.

const width = 480, height = 200, left = 48, bottom = 22, top = 8, right = 8;

/** A chart in `figure`, whose `add` appends a value. */
export function createChart(figure, title, log) {
  const values = [];
  let drawing = false;
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  figure.replaceChildren(caption, svg);

  function draw() {
    drawing = false;
    const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
    if (!finite.length) return;
    const scale = log ? Math.log10 : (value) => value;
    let low = scale(Math.min(...finite)), high = scale(Math.max(...finite));
    if (high - low < 1e-12) [low, high] = [low - 0.5, high + 0.5];
    const x = (i) => left + (i / Math.max(values.length - 1, 1)) * (width - left - right);
    const y = (value) => top + ((high - scale(value)) / (high - low)) * (height - top - bottom);
    const points = values.map((value, i) => Number.isFinite(value) && (!log || value > 0) ? `${x(i).toFixed(1)},${y(value).toFixed(1)}` : "").filter(Boolean);
    const back = log ? (value) => 10 ** value : (value) => value;
    const labels = [low, (low + high) / 2, high].map((at) => {
      const text = element("text", { x: left - 6, y: y(back(at)) + 4, "text-anchor": "end" });
      text.textContent = Number(back(at).toPrecision(2)).toString();
      const line = element("line", { x1: left, x2: width - right, y1: y(back(at)), y2: y(back(at)) });
      return [line, text];
    });
    const count = element("text", { x: width - right, y: height - 6, "text-anchor": "end" });
    count.textContent = `${values.length} steps, now ${Number(values.at(-1).toPrecision(3))}`;
    svg.replaceChildren(...labels.flat(), element("polyline", { points: points.join(" ") }), count);
    svg.setAttribute("aria-label", `${title}: ${count.textContent}`);
  }

  return {
    add(value) {
      values.push(value);
      if (!drawing) requestAnimationFrame(draw); // many points a frame are one drawing
      drawing = true;
    },
  };
}

function element(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
