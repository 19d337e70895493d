// The scene as it stands, and what the rules make of it.
import { NAMES, aggregate, distance, mean } from "./rules.js";

export const FEWEST = 3;
export const MOST = 40;
export const state = { scene: "good", seed: 0, chosen: 0, nnm: false, look: "tq", atEnd: true, kind: true };

export const find = (id) => document.getElementById(id);
export const plane = find("plane");
export const size = () => plane.clientWidth || 600;
export const pairs = (points) => points.map((p) => [p.x, p.y]);
export const truth = () => mean(pairs(state.points.filter((p) => !p.byzantine)));
export const countByzantine = () => state.points.filter((p) => p.byzantine).length;

export function solve() {
  const { f, iterations, start, nnm } = state;
  const sent = pairs(state.points);
  const target = truth();
  return NAMES.filter((name) => state.rules.includes(name)).map((name) => {
    const result = aggregate(name, sent, { f, iterations, start, nnm });
    return { ...result, name, mixed: nnm, off: distance(result.value, target) };
  });
}

// A point's weight in the rule that is looked at; TQ's as of the step shown.
export function weigh(looked, i) {
  if (!looked) return 1;
  const inside = looked.name === "tq" && !looked.mixed ? looked.inside[Math.min(state.step, looked.inside.length - 1)] : null;
  return inside ? Number(inside[i]) : looked.weights[i];
}
