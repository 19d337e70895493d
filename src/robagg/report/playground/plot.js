// Drawing: the plane as SVG. One unit of the drawing is one pixel of the screen, so that text stays readable on a phone.
import { ABOUT, outline } from "./about.js";

const SVG = "http://www.w3.org/2000/svg";
export const REACH = 13; // pixels about a point that a finger can take hold of

export function make(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A square view that holds all points with some air around them.
export function fit(points) {
  const xs = points.map((p) => p[0]);
  const ys = points.map((p) => p[1]);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const half = 0.66 * Math.max(right - left, high - low, 1);
  return { x: (left + right) / 2, y: (low + high) / 2, half };
}

// From the plane to the screen and back.
export function lens(view, size) {
  const scale = size / (2 * view.half);
  return {
    scale,
    place: ([x, y]) => [(x - view.x + view.half) * scale, (view.y + view.half - y) * scale],
    back: (px, py) => [view.x - view.half + px / scale, view.y + view.half - py / scale],
  };
}

const at = (place, p) => place(p).map((v) => v.toFixed(2));

// 1, 2 or 5 times a power of ten, so that about six lines are seen.
function gap(half) {
  const rough = half / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((k) => k * power >= rough) ?? 10);
}

export function drawGrid(layer, view, size) {
  const { place } = lens(view, size);
  const step = gap(view.half);
  const lines = [];
  const count = (value) => Number((value * step).toPrecision(6)).toString().replace("-", "\u2212");
  for (let k = Math.ceil((view.x - view.half) / step); k * step <= view.x + view.half; k += 1) {
    const [x] = place([k * step, 0]);
    lines.push(make("line", { x1: x, x2: x, y1: 0, y2: size, class: k ? "grid" : "grid axis" }));
    if (x > 24 && x < size - 12) lines.push(make("text", { x, y: size - 5, class: "tick", "text-anchor": "middle" }, count(k)));
  }
  for (let k = Math.ceil((view.y - view.half) / step); k * step <= view.y + view.half; k += 1) {
    const [, y] = place([0, k * step]);
    lines.push(make("line", { x1: 0, x2: size, y1: y, y2: y, class: k ? "grid" : "grid axis" }));
    if (y > 12 && y < size - 24) lines.push(make("text", { x: 5, y: y + 4, class: "tick" }, count(k)));
  }
  layer.replaceChildren(...lines);
}

// Walks up to `step`, with the circle of tau that decides the step after it.
export function drawWalks(layer, results, step, view, size) {
  const { place, scale } = lens(view, size);
  const nodes = [];
  for (const { name, path, taus } of results) {
    const shown = path.slice(0, step + 1);
    const tau = taus[Math.min(step, taus.length - 1)];
    if (tau != null && Number.isFinite(tau)) {
      const [cx, cy] = at(place, path[Math.min(step, taus.length - 1)]);
      nodes.push(make("circle", { cx, cy, r: tau * scale, class: `tau ${name}` }));
    }
    if (path.length < 2) continue;
    nodes.push(make("polyline", { points: shown.map((p) => at(place, p).join(",")).join(" "), class: `walk ${name}` }));
    for (const [k, p] of shown.entries()) {
      const [cx, cy] = at(place, p);
      nodes.push(make("circle", { cx, cy, r: k ? 2.5 : 4, class: `stop ${name}${k ? "" : " start"}` }));
    }
  }
  layer.replaceChildren(...nodes);
}

export function drawMixed(layer, points, view, size) {
  const { place } = lens(view, size);
  layer.replaceChildren(
    ...points.map((p) => {
      const [x, y] = at(place, p);
      return make("path", { d: outline("diamond", 3.5), transform: `translate(${x} ${y})`, class: "mixed" });
    }),
  );
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = "600 13px system-ui, sans-serif"; // as .label in the style
const TALL = 15;
const SIDES = [[1, -0.6], [1, 0.6], [-1, -0.6], [-1, 0.6], [0, -1], [0, 1], [1, 0], [-1, 0]];

// A label beside its place, with a line to it where it is far: where it covers least, and there as near as it can be.
function writeLabel({ x, y, titles }, marks, taken, size) {
  const words = titles.join(", ");
  const width = pen.measureText(words).width + 4;
  const spots = [20, 38, 56, 80].flatMap((far) =>
    SIDES.map(([dx, dy]) => ({ far, left: x + (dx ? 0.6 * far * dx : -width / 2) - (dx < 0 ? width : 0), top: y + far * dy - TALL / 2 })),
  );
  const cost = ({ far, left, top }) => {
    const out = left < 2 || left + width > size - 2 || top < 2 || top + TALL > size - 2;
    const words = taken.filter((box) => left < box.left + box.width + 4 && left + width + 4 > box.left && Math.abs(top - box.top) < TALL);
    const covered = marks.filter(([px, py]) => px > left - 6 && px < left + width + 6 && py > top - 5 && py < top + TALL + 5);
    return 1000 * out + 100 * words.length + 3 * covered.length + far / 20;
  };
  const { far, left, top } = spots.reduce((a, b) => (cost(b) < cost(a) ? b : a));
  taken.push({ left, top, width });
  const label = make("text", { x: left + 2, y: top + 12, class: "label" }, words);
  if (far < 38) return [label];
  const [ex, ey] = [Math.min(Math.max(x, left), left + width), Math.min(Math.max(y, top), top + TALL)];
  return [make("line", { x1: x, y1: y, x2: ex, y2: ey, class: "leader" }), label];
}

// Results, with one label for those that lie on each other. `spots` are {name, title, point}; labels make room for
// `points` too.
export function drawResults(layer, spots, points, view, size) {
  const { place } = lens(view, size);
  const marks = [...points, ...spots.map(({ point }) => point)].map(place);
  const nodes = [];
  const labels = [];
  for (const { name, title, point } of spots) {
    const [x, y] = place(point);
    const shape = name === "honest" ? make("path", { d: "M-9 0H9M0 -9V9" }) : make("path", { d: outline(ABOUT[name].shape, 6.5) });
    shape.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
    shape.setAttribute("class", `result ${name}`);
    nodes.push(shape);
    const near = labels.find((label) => Math.hypot(label.x - x, label.y - y) < 8);
    if (near) near.titles.push(title);
    else labels.push({ x, y, titles: [title] });
  }
  const taken = [];
  for (const label of labels) nodes.push(...writeLabel(label, marks, taken, size));
  layer.replaceChildren(...nodes);
}

// A point that can be taken hold of: a circle for the honest, a triangle for the Byzantine.
export function makePoint() {
  return make("g", { class: "point", role: "button" }, make("circle", { r: REACH, class: "reach" }), make("path", {}));
}

const circle = "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0Z";

export function dressPoint(node, point, { label, chosen, weight, view, size }) {
  const [x, y] = at(lens(view, size).place, [point.x, point.y]);
  node.setAttribute("transform", `translate(${x} ${y})`);
  node.setAttribute("class", `point ${point.byzantine ? "byzantine" : "honest"}${weight > 1e-6 ? "" : " unheard"}${chosen ? " chosen" : ""}`);
  node.setAttribute("aria-label", label);
  node.setAttribute("aria-pressed", String(chosen));
  node.setAttribute("tabindex", chosen ? "0" : "-1");
  node.lastChild.setAttribute("d", point.byzantine ? outline("up", 6.5) : circle);
}
