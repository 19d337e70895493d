// Scenes to begin with. A scene is made again from a seed, so that "another draw" shows whether it was luck.

// Numbers in [0, 1) that are the same in every browser (mulberry32).
export function source(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function normal(next) {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

// Points around a place; `deviation` is one number, or one for each coordinate.
function cloud(next, count, place, deviation) {
  const [dx, dy] = Array.isArray(deviation) ? deviation : [deviation, deviation];
  return Array.from({ length: count }, () => [place[0] + dx * normal(next), place[1] + dy * normal(next)]);
}

const honest = (points) => points.map(([x, y]) => ({ x, y, byzantine: false }));
const byzantine = (points) => points.map(([x, y]) => ({ x, y, byzantine: true }));

const figure1 = (next) => [
  ...honest(cloud(next, 10, [0, 0], 1)),
  ...byzantine(cloud(next, 9, [10, 10], Math.sqrt(0.1))),
];

function far(next) {
  return [...honest(cloud(next, 12, [2, 1], 1)), ...byzantine(cloud(next, 5, [24, -14], 2.5))];
}

// Sparse gradients: in each coordinate most honest clients agree and a few are far out, all to the same side. The MAD
// sees those that agree, so tau is small; the colluders agree too, a little off, and are inside.
function near(next) {
  const crowd = cloud(next, 8, [0, 0], 0.25);
  const right = cloud(next, 3, [3.2, 0], 0.3);
  const above = cloud(next, 3, [0, 3.2], 0.3);
  return [...honest([...crowd, ...right, ...above]), ...byzantine(cloud(next, 6, [-0.52, -0.52], 0.04))];
}

function groups(next) {
  return [
    ...honest(cloud(next, 5, [-4, -2], 0.5)),
    ...honest(cloud(next, 5, [4, -2.5], 0.5)),
    ...honest(cloud(next, 5, [0, 4.5], 0.5)),
    ...byzantine(cloud(next, 5, [4.6, -3.4], 0.25)),
  ];
}

const quiet = (next) => honest(cloud(next, 15, [1, 1], 1.2));

export const SCENES = {
  good: {
    title: "Fig. 1, good start",
    text: "Nine of nineteen are Byzantine and stand together. TQ starts at the median and walks onto the honest mean; Huber is pulled aside.",
    draw: figure1,
    rules: ["tq", "huber", "mean"],
    iterations: 100,
    start: "median",
  },
  bad: {
    title: "Fig. 1, bad start",
    text: "The same points, but the walk starts at the mean of all. TQ usually still finds the honest; try other draws.",
    draw: figure1,
    rules: ["tq", "huber", "mean"],
    iterations: 100,
    start: "mean",
  },
  far: {
    title: "Far attackers",
    text: "Attackers far away move the mean most. For TQ it makes no difference how far they are: beyond tau they have no pull.",
    draw: far,
    first: 1,
    rules: ["tq", "huber", "rfa", "cm", "mean"],
  },
  near: {
    title: "Near colluders",
    text: "TQ's weak side: most honest points agree, so tau is small and cuts off the others, while the Byzantine ones stay inside.",
    draw: near,
    first: 1,
    rules: ["tq", "huber", "cm", "mean"],
  },
  groups: {
    title: "Honest but different",
    text: "Honest clients with different data form groups, and attackers stand beside one. TQ and Krum fall for it; try NNM.",
    draw: groups,
    rules: ["tq", "huber", "krum", "cm"],
  },
  nobody: {
    title: "Nobody attacks",
    text: "What caution costs: set up for attackers that are not there, every rule but the mean ends a little off.",
    draw: quiet,
    f: 5,
    rules: ["tq", "krum", "cm", "tm", "mean"],
  },
};

// The points of a scene, and how the controls stand for it.
export function open(name, seed) {
  const scene = SCENES[name];
  const points = scene.draw(source(1000 + (scene.first ?? 0) + seed));
  return {
    points,
    f: scene.f ?? points.filter((p) => p.byzantine).length,
    rules: scene.rules,
    iterations: scene.iterations ?? 10,
    start: scene.start ?? "median",
  };
}
