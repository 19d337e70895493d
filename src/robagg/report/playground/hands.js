// What hands do to the scene: with the mouse, a finger or the keyboard.
import { lens } from "./plot.js";
import { mostByzantine } from "./rules.js";
import { draw } from "./show.js";
import { MOST, countByzantine, find, plane, size, state } from "./world.js";

let dragged = null;
let playing = null;

function choose(i, focus = true) {
  state.chosen = (i + state.points.length) % state.points.length;
  draw();
  if (focus) find("points").children[state.chosen].focus({ preventScroll: true });
}

function move(i, x, y) {
  const { view } = state;
  const keep = (value, middle) => Math.min(Math.max(value, middle - 0.98 * view.half), middle + 0.98 * view.half);
  Object.assign(state.points[i], { x: keep(x, view.x), y: keep(y, view.y) });
  draw();
}

export function add(byzantine, place) {
  if (state.points.length >= MOST) return;
  const { x, y, half } = state.view;
  const spot = place ?? [x + half * (Math.random() - 0.5), y + half * (Math.random() - 0.5)];
  state.points.push({ x: spot[0], y: spot[1], byzantine });
  state.kind = byzantine;
  recount();
  choose(state.points.length - 1);
}

// f goes along with the number of Byzantine points until somebody sets it.
function recount() {
  if (state.follow) state.f = Math.min(countByzantine(), mostByzantine(state.points.length));
}

function change(act) {
  act(state.chosen);
  recount();
  choose(Math.min(state.chosen, state.points.length - 1));
}

export const remove = () => find("remove").disabled || change((i) => state.points.splice(i, 1));
export const turn = () => find("turn").disabled || change((i) => { state.points[i].byzantine = !state.points[i].byzantine; });

export function zoom(factor) {
  state.view = { ...state.view, half: Math.min(Math.max(state.view.half * factor, 0.5), 1e4) };
  draw();
}

export function stop() {
  clearInterval(playing);
  playing = null;
  find("play").textContent = "Play";
}

export function play() {
  if (playing) return stop();
  state.step = 0;
  state.atEnd = false;
  find("play").textContent = "Stop";
  playing = setInterval(() => {
    state.step += 1;
    if (state.step >= state.iterations) {
      state.atEnd = true;
      stop();
    }
    draw();
  }, Math.max(60, 1500 / state.iterations));
  draw();
  return undefined;
}

export function grab(event) {
  const node = event.target.closest(".point");
  if (!node) return;
  dragged = [...find("points").children].indexOf(node);
  plane.setPointerCapture(event.pointerId);
  choose(dragged);
  event.preventDefault();
}

export function drag(event) {
  if (dragged === null) return;
  move(dragged, ...pointAt(event));
}

export const release = () => { dragged = null; };

// Where in the plane an event is.
export function pointAt(event) {
  const box = plane.getBoundingClientRect();
  return lens(state.view, size()).back(event.clientX - box.left, event.clientY - box.top);
}

let spoken = null;

// What a screen reader is to say of a point that was moved or turned; not of every step of a key that is held.
function say(i) {
  clearTimeout(spoken);
  spoken = setTimeout(() => { find("said").textContent = find("points").children[i].getAttribute("aria-label"); }, 250);
}

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export function press(event) {
  const i = state.chosen;
  if (KEYS[event.key]) {
    const step = state.view.half * (event.shiftKey ? 0.1 : 0.01);
    const [dx, dy] = KEYS[event.key];
    move(i, state.points[i].x + step * dx, state.points[i].y + step * dy);
    say(i);
  } else if (event.key === "PageDown") choose(i + 1);
  else if (event.key === "PageUp") choose(i - 1);
  else if (event.key === "Delete") remove();
  else if (event.key === "Enter") { turn(); say(i); }
  else return;
  event.preventDefault();
}
