// Sets the page up and ties its controls to the scene.
import { ABOUT } from "./about.js";
import { add, drag, grab, play, pointAt, press, release, remove, stop, turn, zoom } from "./hands.js";
import { fillLegend, swatch, tag } from "./panel.js";
import { fit } from "./plot.js";
import { NAMES, aggregate } from "./rules.js";
import { SCENES, open } from "./scenes.js";
import { draw } from "./show.js";
import { countByzantine, find, pairs, plane, state } from "./world.js";

function start(scene, seed) {
  stop();
  const opened = open(scene, seed);
  Object.assign(state, opened, { scene, seed, chosen: 0, atEnd: true, rules: [...opened.rules] });
  state.follow = state.f === countByzantine();
  state.view = fit(pairs(state.points));
  draw();
}

function build() {
  for (const [name, scene] of Object.entries(SCENES)) {
    const button = tag("button", { type: "button", "data-scene": name }, scene.title);
    button.addEventListener("click", () => start(name, 0));
    document.querySelector(".presets").append(button);
  }
  for (const name of NAMES) {
    const box = tag("input", { type: "checkbox", id: `rule-${name}` });
    box.addEventListener("change", () => {
      state.rules = box.checked ? [...state.rules, name] : state.rules.filter((other) => other !== name);
      draw();
    });
    find("rules").append(tag("label", { class: "check" }, box, swatch(name), ABOUT[name].title));
  }
  fillLegend(find("legend"), find("about"));
}

function listen() {
  const slide = (id, act) => find(id).addEventListener("input", (event) => { act(Number(event.target.value)); draw(); });
  slide("f", (value) => { state.f = value; state.follow = false; });
  slide("iterations", (value) => { state.iterations = value; });
  slide("step", (value) => { stop(); state.step = value; state.atEnd = value === state.iterations; });
  find("start").addEventListener("change", (event) => { state.start = event.target.value; draw(); });
  find("closer-look").addEventListener("change", (event) => { state.look = event.target.value; draw(); });
  find("nnm").addEventListener("change", (event) => { state.nnm = event.target.checked; draw(); });
  for (const [id, act] of Object.entries({
    "add-honest": () => add(false),
    "add-byzantine": () => add(true),
    turn,
    remove,
    redraw: () => start(state.scene, state.seed + 1),
    closer: () => zoom(1 / 1.4),
    farther: () => zoom(1.4),
    fit: () => { state.view = fit(pairs(state.points)); draw(); },
    play,
    theme: turnTheme,
  })) find(id).addEventListener("click", act);
  plane.addEventListener("pointerdown", grab);
  plane.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel"]) plane.addEventListener(end, release);
  // A finger on a point drags it, anywhere else it scrolls the page.
  const hold = (event) => event.target.closest(".point") && event.preventDefault();
  plane.addEventListener("touchstart", hold, { passive: false });
  plane.addEventListener("keydown", press);
  plane.addEventListener("dblclick", (event) => event.target.closest(".point") || add(state.kind, pointAt(event)));
  new ResizeObserver(() => draw()).observe(plane);
}

const THEMES = ["system", "light", "dark"];

function turnTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  find("theme").textContent = `Colours: ${next}`;
}

build();
start("good", 0);
listen();

// For tests, and for whoever opens the console: the rules and the scene as it stands.
globalThis.playground = { aggregate, state, start, NAMES };
