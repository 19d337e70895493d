// The words and tables beside the plane.
import { ABOUT, outline } from "./about.js";
import { make } from "./plot.js";
import { NAMES } from "./rules.js";

export function tag(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const tell = (value) => value.toFixed(2).replace("-", "\u2212");

// A rule's mark as it is drawn in the plane.
export function swatch(name) {
  const mark = make("path", { d: outline(ABOUT[name].shape, 6), transform: "translate(9 9)", class: `result ${name}` });
  return make("svg", { width: 18, height: 18, "aria-hidden": "true", class: "swatch" }, mark);
}

// Who has no part in the value: for TQ who is outside tau in the last step, for the others who has no weight.
export function leftOut(result, points) {
  const last = result.name === "tq" && result.inside.length === result.path.length - 1 ? result.inside.at(-1) : null;
  return points.filter((p, i) => !p.byzantine && (last && !result.mixed ? !last[i] : result.weights[i] < 1e-6)).length;
}

export function fillTable(body, results, points) {
  const honest = points.filter((p) => !p.byzantine).length;
  body.replaceChildren(
    ...results.map((result) => {
      const share = result.weights.reduce((sum, w, i) => sum + (points[i].byzantine ? w : 0), 0);
      return tag(
        "tr",
        { "data-rule": result.name },
        tag("th", { scope: "row" }, swatch(result.name), ABOUT[result.name].title),
        tag("td", {}, tell(result.off)),
        tag("td", {}, `${Math.round(100 * share)}%`),
        tag("td", {}, `${leftOut(result, points)} of ${honest}`),
      );
    }),
  );
}

export function summarise(results, points) {
  if (!results.length) return "Choose a rule.";
  const best = results.reduce((a, b) => (b.off < a.off ? b : a));
  const worst = results.reduce((a, b) => (b.off > a.off ? b : a));
  const byzantine = points.filter((p) => p.byzantine).length;
  const ends = `${ABOUT[best.name].title} lands nearest to the honest mean (${tell(best.off)} off)`;
  const others = best === worst ? "" : `, ${ABOUT[worst.name].title} farthest (${tell(worst.off)})`;
  return `${byzantine} of ${points.length} points are Byzantine. ${ends}${others}.`;
}

const LEGEND = [
  ["point honest", "an honest point", "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0Z"],
  ["point byzantine", "a Byzantine client", outline("up", 6.5)],
  ["point honest unheard", "hollow: it has no weight in the rule looked at", "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0Z"],
  ["result honest", "the mean of the honest points: where a rule should land", "M-8 0H8M0 -8V8"],
  ["tau tq", "the circle of tau: TQ believes who is inside, Huber draws in who is outside", "M-8 5A11 11 0 0 1 8 5"],
  ["walk tq", "a walk with its iterates; it starts at the larger dot", "M-8 3L-1 -3L8 -5"],
  ["mixed", "with NNM: what the rules see in place of the points", outline("diamond", 4)],
];

export function fillLegend(list, about) {
  list.replaceChildren(
    ...LEGEND.map(([kind, text, d]) => {
      const path = make("path", { d, transform: "translate(10 10)", class: kind.startsWith("point") ? "" : kind });
      const group = kind.startsWith("point") ? make("g", { class: kind }, path) : path;
      return tag("li", {}, make("svg", { width: 20, height: 20, "aria-hidden": "true" }, group), text);
    }),
  );
  about.replaceChildren(
    ...NAMES.flatMap((name) => [tag("dt", {}, swatch(name), ABOUT[name].title), tag("dd", {}, ABOUT[name].text)]),
  );
}

// The scene as a program, so that what was seen here can be computed there.
export function writePython({ points, f, iterations, start, nnm }, names) {
  const rows = points.map((p) => `    [${p.x.toFixed(4)}, ${p.y.toFixed(4)}],${p.byzantine ? "  # Byzantine" : ""}`);
  const takes = (name) => (["tq", "huber", "rfa", "mca"].includes(name) ? `f=${f}, iterations=${iterations}` : `f=${f}`);
  const front = nnm ? `ra.NNM(f=${f}) >> ` : "";
  const lines = names.map((name) => `print("${ABOUT[name].title}", (${front}ra.${ABOUT[name].title}(${takes(name)}))(x))`);
  const note = start === "mean" ? ["# The rules of the library start at the median; here TQ and Huber start at the mean."] : [];
  return ["import numpy as np", "import robagg as ra", "", "x = np.array([", ...rows, "])", ...note, ...lines].join("\n");
}
