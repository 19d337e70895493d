// The rules in the plane, written from their definitions. A point is [x, y]; a rule gets n of them, of which f may be Byzantine.
// Every rule answers { value, path, taus, inside, weights, rest }: the iterates (the start first), the radius and who was
// inside it in each step, each point's share in the value, and the share of the point it started from.

export const ROUNDING = 1e-12; // "inside" forgives rounding, so that points that coincide are inside together
const SMOOTHING = 0.1; // RFA: the distance below which points pull alike

export const subtract = (a, b) => [a[0] - b[0], a[1] - b[1]];
export const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
const sum = (values) => values.reduce((a, b) => a + b, 0);

export function median(values) {
  const s = [...values].sort((a, b) => a - b);
  const n = s.length;
  return (s[(n - 1) >> 1] + s[n >> 1]) / 2;
}

export const middle = (points) => [0, 1].map((j) => median(points.map((p) => p[j])));

export const mean = (points) => [0, 1].map((j) => sum(points.map((p) => p[j])) / points.length);

// V: over the coordinates, the sum of squared MADs.
export function spread(points) {
  const m = middle(points);
  return sum([0, 1].map((j) => median(points.map((p) => Math.abs(p[j] - m[j]))) ** 2));
}

// tau^2 = (n - f)/f (|v - m|^2 + V), with V no less than `least`; without Byzantine clients everyone is believed.
export function radius(points, f, v, least) {
  if (f === 0) return Infinity;
  const squared = distance(v, middle(points)) ** 2 + Math.max(spread(points), least);
  return Math.sqrt(((points.length - f) / f) * squared);
}

// Who is within tau of v. Points mixed from the same points coincide up to a few units in their last place.
function within(points, v, tau) {
  const m = middle(points);
  const blur = (8 * Number.EPSILON * Math.max(...points.map((p) => Math.hypot(...p)))) ** 2;
  return points.map((p) => {
    const slack = ROUNDING * (distance(p, m) + distance(v, m)) ** 2 + blur;
    return distance(p, v) ** 2 <= tau ** 2 + slack;
  });
}

// v <- v + sum_i k_i (x_i - v), where `pull` says from v how strongly each point pulls.
function walk(points, start, shares, iterations, pull) {
  let v = start;
  let weights = shares;
  const path = [v];
  const taus = [];
  const inside = [];
  for (let step = 0; step < iterations; step += 1) {
    const { strength, tau = null, near = null } = pull(v);
    const from = v;
    const total = sum(strength);
    v = [0, 1].map((j) => from[j] + sum(strength.map((k, i) => k * (points[i][j] - from[j]))));
    weights = weights.map((w, i) => w * (1 - total) + strength[i]);
    path.push(v);
    taus.push(tau);
    inside.push(near);
  }
  return { value: v, path, taus, inside, weights, rest: 1 - sum(weights) };
}

const nobody = (points) => points.map(() => 0);

// Where TQ and Huber start: the median of all points, or their mean.
function begin(points, start) {
  const n = points.length;
  return start === "mean" ? [mean(points), points.map(() => 1 / n)] : [middle(points), nobody(points)];
}

function tq(points, { f, iterations, start, least }) {
  const n = points.length;
  const [from, shares] = begin(points, start);
  return walk(points, from, shares, iterations, (v) => {
    const tau = radius(points, f, v, least);
    const near = within(points, v, tau);
    return { strength: near.map((yes) => (yes ? 1 / n : 0)), tau, near };
  });
}

function huber(points, { f, iterations, start, least }) {
  const n = points.length;
  const [from, shares] = begin(points, start);
  return walk(points, from, shares, iterations, (v) => {
    const tau = radius(points, f, v, least);
    const near = within(points, v, tau);
    return { strength: points.map((p, i) => (near[i] ? 1 : tau / distance(p, v)) / n), tau, near };
  });
}

function rfa(points, { iterations }) {
  return walk(points, [0, 0], nobody(points), iterations, (v) => {
    const pulls = points.map((p) => 1 / Math.max(distance(p, v), SMOOTHING));
    const total = sum(pulls);
    return { strength: pulls.map((w) => w / total) };
  });
}

function mca(points, { iterations }) {
  return walk(points, middle(points), nobody(points), iterations, (v) => {
    const squares = points.map((p) => distance(p, v) ** 2);
    const width = median(squares.map(Math.sqrt));
    const least = Math.min(...squares); // measured from the nearest point, not all kernels can vanish
    const kernels = squares.map((r) => (width > 0 ? Math.exp((least - r) / (2 * width ** 2)) : Number(r === least)));
    const total = sum(kernels);
    return { strength: kernels.map((k) => k / total) };
  });
}

// For each point the indices of its n - f nearest, itself first; of two as near, the lower index.
export function neighbours(points, f) {
  return points.map((p, i) => {
    const far = points.map((q, j) => (j === i ? -1 : distance(p, q) ** 2));
    return points.map((_, j) => j).sort((a, b) => far[a] - far[b] || a - b).slice(0, points.length - f);
  });
}

const still = (value, weights) => ({ value, path: [value], taus: [], inside: [], weights, rest: 0 });

function krum(points, { f }) {
  const scores = neighbours(points, f).map((near, i) => sum(near.map((j) => distance(points[i], points[j]) ** 2)));
  const best = scores.indexOf(Math.min(...scores));
  return still(points[best], points.map((_, i) => Number(i === best)));
}

// Per coordinate the mean of the sorted values lo..hi-1; a point's weight is its share of the coordinates.
function trim(points, lo, hi) {
  const weights = nobody(points);
  const value = [0, 1].map((j) => {
    const order = points.map((_, i) => i).sort((a, b) => points[a][j] - points[b][j] || a - b).slice(lo, hi);
    for (const i of order) weights[i] += 1 / (2 * order.length);
    return sum(order.map((i) => points[i][j])) / order.length;
  });
  return still(value, weights);
}

const cm = (points) => trim(points, (points.length - 1) >> 1, (points.length >> 1) + 1);
const tm = (points, { f }) => trim(points, f, points.length - f);
const average = (points) => still(mean(points), points.map(() => 1 / points.length));

const RULES = { tq, huber, rfa, mca, krum, cm, tm, mean: average };
export const NAMES = Object.keys(RULES);
export const mostByzantine = (n) => (n - 1) >> 1;

// What NNM puts in the points' place: the mean of each one's n - f nearest.
export const mix = (points, f) => neighbours(points, f).map((near) => mean(near.map((i) => points[i])));

// A rule by its name; `nnm` mixes the points first, and weights are then those of the points as they were sent.
export function aggregate(name, points, { f, iterations = 10, start = "median", nnm = false }) {
  if (!Object.hasOwn(RULES, name)) throw new Error(`the rule must be one of ${NAMES.join(", ")}, got ${name}`);
  if (!(f >= 0 && f <= mostByzantine(points.length))) {
    throw new Error(`n must be at least 2f+1, got n=${points.length}, f=${f}`);
  }
  if (!nnm) return RULES[name](points, { f, iterations, start, least: 0 });
  const near = neighbours(points, f);
  const m = middle(points);
  // What the mean of n - f points leaves of the middle point's squared distance: mixed points may coincide.
  const least = median(points.map((p) => distance(p, m) ** 2)) / (points.length - f);
  const settings = { f, iterations, start, least };
  const mixed = RULES[name](near.map((indices) => mean(indices.map((i) => points[i]))), settings);
  const weights = nobody(points);
  near.forEach((indices, row) => {
    for (const i of indices) weights[i] += mixed.weights[row] / indices.length;
  });
  return { ...mixed, weights };
}
