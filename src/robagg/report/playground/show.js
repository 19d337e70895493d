// Brings the page up to date with the scene.
import { ABOUT } from "./about.js";
import { fillTable, summarise, tag, tell, writePython } from "./panel.js";
import { dressPoint, drawGrid, drawMixed, drawResults, drawWalks, makePoint } from "./plot.js";
import { NAMES, mix, mostByzantine } from "./rules.js";
import { SCENES } from "./scenes.js";
import { FEWEST, MOST, countByzantine, find, pairs, plane, size, solve, state, truth, weigh } from "./world.js";

let later = null;

function drawPoints(results) {
  const layer = find("points");
  while (layer.children.length > state.points.length) layer.lastChild.remove();
  while (layer.children.length < state.points.length) layer.append(makePoint());
  const looked = results.find((result) => result.name === state.look);
  state.points.forEach((point, i) => {
    const label = `${point.byzantine ? "Byzantine point" : "Honest point"} ${i + 1} at ${tell(point.x)}, ${tell(point.y)}`;
    const how = { label, chosen: i === state.chosen, weight: weigh(looked, i), view: state.view, size: size() };
    dressPoint(layer.children[i], point, how);
  });
}

export function draw() {
  state.f = Math.min(state.f, mostByzantine(state.points.length));
  state.step = state.atEnd ? state.iterations : Math.min(state.step, state.iterations);
  const results = solve();
  const width = size();
  plane.setAttribute("viewBox", `0 0 ${width} ${width}`);
  drawGrid(find("grid"), state.view, width);
  drawWalks(find("walks"), results, state.step, state.view, width);
  drawMixed(find("mixed"), state.nnm ? mix(pairs(state.points), state.f) : [], state.view, width);
  drawPoints(results);
  const spots = results.map(({ name, path, value }) => {
    return { name, title: ABOUT[name].title, point: path.length > 1 ? path[state.step] : value };
  });
  const target = { name: "honest", title: "honest mean", point: truth() };
  drawResults(find("results"), [target, ...spots], pairs(state.points), state.view, width);
  fillTable(find("table"), results, state.points);
  showControls();
  clearTimeout(later);
  later = setTimeout(() => { // a moving point should not make a screen reader speak without end
    find("summary").textContent = summarise(results, state.points);
    find("python").textContent = writePython(state, results.map((result) => result.name));
  }, 250);
}

function showControls() {
  const n = state.points.length;
  const byzantine = countByzantine();
  for (const [id, value] of [["f", state.f], ["iterations", state.iterations], ["step", state.step]]) {
    if (id === "f") find(id).max = mostByzantine(n);
    if (id === "step") find(id).max = state.iterations;
    find(id).value = value;
    find(`${id}-out`).textContent = value;
  }
  const most = `${n} points, ${byzantine} of them Byzantine; f can be at most ${mostByzantine(n)}.`;
  find("count").textContent = byzantine > state.f ? `${most} That is more than the rules tolerate.` : most;
  find("start").value = state.start;
  find("nnm").checked = state.nnm;
  const names = NAMES.filter((name) => state.rules.includes(name));
  if (!names.includes(state.look)) state.look = names[0] ?? "tq";
  find("closer-look").replaceChildren(...names.map((name) => tag("option", { value: name }, ABOUT[name].title)));
  find("closer-look").value = state.look;
  for (const name of NAMES) find(`rule-${name}`).checked = state.rules.includes(name);
  for (const button of document.querySelectorAll(".presets button")) {
    button.setAttribute("aria-pressed", String(button.dataset.scene === state.scene));
  }
  find("story").textContent = SCENES[state.scene].text;
  find("remove").disabled = n <= FEWEST || (!state.points[state.chosen].byzantine && n - byzantine <= 1);
  find("turn").disabled = !state.points[state.chosen].byzantine && n - byzantine <= 1;
  find("add-honest").disabled = find("add-byzantine").disabled = n >= MOST;
}
