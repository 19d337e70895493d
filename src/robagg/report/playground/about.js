// What each rule is called, how it is drawn, and what it does, in one sentence.

export const ABOUT = {
  tq: { title: "TQ", shape: "star", text: "walks from its start to the mean of the points within tau; beyond tau a point has no pull at all." },
  huber: { title: "Huber", shape: "square", text: "walks like TQ, but a point beyond tau still pulls, as hard as one on the circle." },
  rfa: { title: "RFA", shape: "up", text: "seeks the point with the least sum of distances, from the origin; every point pulls alike, near or far." },
  mca: { title: "MCA", shape: "diamond", text: "pulls by a bell curve of the distance, as wide as the median distance." },
  krum: { title: "Krum", shape: "cross", text: "is one of the points: the one with the closest company of n - f." },
  cm: { title: "CM", shape: "down", text: "takes the median of each coordinate for itself." },
  tm: { title: "TM", shape: "hexagon", text: "drops, per coordinate, the f largest and f smallest values, and averages the rest." },
  mean: { title: "Mean", shape: "plus", text: "averages everything: a single Byzantine client moves it anywhere." },
};

const polygon = (count, turn) =>
  Array.from({ length: count }, (_, k) => {
    const angle = turn + (2 * Math.PI * k) / count;
    return [Math.cos(angle), Math.sin(angle)];
  });

const SHAPES = {
  star: polygon(10, -Math.PI / 2).map(([x, y], k) => (k % 2 ? [0.5 * x, 0.5 * y] : [1.25 * x, 1.25 * y])),
  square: polygon(4, Math.PI / 4).map(([x, y]) => [1.15 * x, 1.15 * y]),
  diamond: polygon(4, 0).map(([x, y]) => [1.2 * x, 1.2 * y]),
  up: polygon(3, -Math.PI / 2).map(([x, y]) => [1.2 * x, 1.2 * y]),
  down: polygon(3, Math.PI / 2).map(([x, y]) => [1.2 * x, 1.2 * y]),
  hexagon: polygon(6, 0).map(([x, y]) => [1.05 * x, 1.05 * y]),
  plus: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
};
SHAPES.cross = SHAPES.plus.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);

// The outline of a shape about (0, 0), for an SVG path.
export function outline(shape, size) {
  return `M${SHAPES[shape].map(([x, y]) => `${(size * x).toFixed(2)} ${(size * y).toFixed(2)}`).join("L")}Z`;
}
