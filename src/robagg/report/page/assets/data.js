// Runs, cells of runs that differ in their seed, and tables of cells.

import { find, inflate } from './page.js';

export const known = JSON.parse(find('data').textContent);
known.runs = unfold(known.runs);

// Runs lie in the page as columns, in which a value that many have stands once.
function unfold(columns) {
  const names = Object.keys(columns);
  const first = columns[names[0]] ?? { values: [] };
  return (first.at ?? first.values).map((_, index) => {
    const run = { index };
    for (const name of names) {
      const { values, at } = columns[name];
      run[name] = values[at ? at[index] : index];
    }
    return run;
  });
}

function settingNames(runs) {
  return [...new Set(runs.flatMap((run) => Object.keys(run.settings)))].sort();
}

const SETTINGS = settingNames(known.runs);

// What a reader can filter by: its name, and a run's value as text.
export const FACETS = [
  { name: 'task', of: (run) => run.task },
  { name: 'rule', of: (run) => run.core },
  { name: 'pre-aggregator', of: (run) => run.mixers || 'none' },
  { name: 'attack', of: (run) => run.attack },
  { name: 'f', of: (run) => String(run.f) },
  { name: 'rho', of: (run) => (run.rho === null ? '–' : String(run.rho)) },
  { name: 'split', of: (run) => run.split },
  { name: 'n', of: (run) => String(run.n) },
  ...SETTINGS.map((name) => ({ name, of: (run) => tellValue(run.settings[name]) })),
];

function tellValue(value) {
  return value === undefined ? 'default' : typeof value === 'string' ? value : JSON.stringify(value);
}

export function tellPlace(run) {
  const split = run.rho === null ? run.split : `rho ${run.rho}`;
  const settings = Object.entries(run.settings).map(([name, value]) => `${name} ${tellValue(value)}`);
  return [run.task, split, `n ${run.n}`, `f ${run.f}`, ...settings].join(', ');
}

// Of each title, the parts that not all of them have.
export function tellApart(titles) {
  const parts = titles.map((title) => title.split(', '));
  return parts.map((mine) => mine.filter((part) => !parts.every((other) => other.includes(part))).join(', '));
}

// A cell among others that were picked with it: what they have in common goes without saying.
export function nameOf(cell, picked) {
  const apart = tellApart(picked.map((other) => other.place))[picked.indexOf(cell)];
  return `${cell.rule} under ${cell.attack}${apart ? ` (${apart})` : ''}`;
}

// Numbers by size, all else by name.
export function compareTexts(a, b) {
  return a.localeCompare(b, 'en', { numeric: true });
}

export function facetValues(facet) {
  return [...new Set(known.runs.map(facet.of))].sort(compareTexts);
}

// What a cell's number is, and what stands behind it: the reader may choose.
export const shown = { measure: known.measures[0], spread: 'deviation' };

// An attack that wants no label has no success, though a run under it diverged.
function findMeasured() {
  const at = known.measures.indexOf(shown.measure);
  return new Set(known.runs.filter((run) => run.measures[at] !== null).map((run) => run.attack));
}

let measured = findMeasured();

// A run that diverged is no use to anybody: it counts as the worst there is, where the measure is of its model.
function isLost(run) {
  return run.diverged !== null && shown.measure.lost !== null && measured.has(run.attack);
}

function valueOf(run) {
  return isLost(run) ? shown.measure.lost : run.measures[known.measures.indexOf(shown.measure)];
}

// Half of the 95 % interval of the mean, by Student's t; below three seeds there is none.
export function halfInterval(values, deviation) {
  if (values.length < 3) return null;
  return (known.student[Math.min(values.length - 3, known.student.length - 1)] * deviation) / Math.sqrt(values.length);
}

export function meanOf(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

export function deviationOf(values) {
  if (values.length < 2) return null;
  const mean = meanOf(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}

// What a band covers: the interval, or below three values all of them.
export function spreadOf(values, percent) {
  const [mean, half] = [meanOf(values), halfInterval(values, deviationOf(values))];
  if (half === null) return [Math.min(...values), Math.max(...values)];
  return [mean - half, mean + half].map((end) => hold(end, percent));
}

// An end of an interval; of percentages within 0 to 100.
export function hold(end, percent) {
  return percent ? Math.max(0, Math.min(100, end)) : end;
}

function summarise(runs) {
  const done = runs.filter((run) => run.status === 'ok');
  const values = done.map(valueOf).filter((value) => value !== null);
  const diverged = done.filter(isLost).length;
  const failed = runs.length - done.length;
  const deviation = deviationOf(values);
  return {
    values,
    mean: meanOf(values),
    deviation,
    half: halfInterval(values, deviation),
    seeds: values.length,
    diverged,
    failed,
    // What stands in a number's place.
    word: values.length === 0 ? (failed ? 'failed' : '–') : diverged === values.length ? 'diverged' : '',
  };
}

export function chooseMeasure(name) {
  shown.measure = known.measures.find((measure) => measure.name === name);
  measured = findMeasured();
  for (const cell of cells.values()) Object.assign(cell, summarise(cell.runs));
}

// A cell's table is all of its spec but the rule, the attack and the seed.
function makeCells(runs) {
  const cells = new Map();
  for (const run of runs) {
    const group = JSON.stringify([run.task, run.split, run.n, run.f, run.settings]);
    const id = JSON.stringify([group, run.method, run.attack]);
    if (!cells.has(id)) {
      const facets = Object.fromEntries(FACETS.map((facet) => [facet.name, facet.of(run)]));
      const text = `${run.method} ${run.attack} ${tellPlace(run)}`.toLowerCase();
      cells.set(id, { id, group, facets, text, rule: run.method, attack: run.attack, place: tellPlace(run), runs: [] });
    }
    cells.get(id).runs.push(run);
  }
  for (const cell of cells.values()) {
    cell.runs.sort((a, b) => a.seed - b.seed);
    Object.assign(cell, summarise(cell.runs));
  }
  return cells;
}

export const cells = makeCells(known.runs);
if ([...cells.values()].some((cell) => cell.half !== null)) shown.spread = '95 % interval';

export function tabulate(shown) {
  const tables = new Map();
  for (const cell of shown) {
    if (!tables.has(cell.group)) tables.set(cell.group, { title: cell.place, rows: new Map(), attacks: [] });
    const table = tables.get(cell.group);
    if (!table.rows.has(cell.rule)) table.rows.set(cell.rule, { rule: cell.rule, cells: new Map() });
    table.rows.get(cell.rule).cells.set(cell.attack, cell);
    if (!table.attacks.includes(cell.attack)) table.attacks.push(cell.attack);
  }
  const made = [...tables.values()].sort((a, b) => compareTexts(a.title, b.title));
  const order = [...new Set(shown.map((cell) => cell.attack))]; // the same in every table
  for (const table of made) {
    table.attacks.sort((a, b) => order.indexOf(a) - order.indexOf(b));
    table.rows = [...table.rows.values()];
    for (const row of table.rows) judge(row, table.attacks);
  }
  return made;
}

// A row's worst case and mean; where a cell has no result, no more is known.
function judge(row, attacks) {
  const there = attacks.map((attack) => row.cells.get(attack)).filter((cell) => cell !== undefined);
  const known = there.filter((cell) => cell.mean !== null);
  row.worst = known.reduce((worst, cell) => (worst === null || merit(cell) < merit(worst) ? cell : worst), null);
  row.mean = meanOf(known.map((cell) => cell.mean));
  row.whole = known.length === attacks.length && !known.some((cell) => cell.failed);
  // The true worst case is above the lowest end of the cells' intervals, and below the upper end of each.
  const sure = known.every((cell) => cell.half !== null);
  row.low = sure ? known.reduce((least, cell) => Math.min(least, merit(cell) - cell.half), Infinity) : null;
  row.high = sure ? known.reduce((least, cell) => Math.min(least, merit(cell) + cell.half), Infinity) : null;
}

// More is better, whatever the measure.
export function merit(cell) {
  return shown.measure.lower ? -cell.mean : cell.mean;
}

// The rows whose worst case is highest, those that seeds do not tell from them, and whether intervals say so.
export function rank(table) {
  const fair = table.rows.filter((row) => row.whole && !row.worst.word);
  const most = fair.reduce((top, row) => Math.max(top, merit(row.worst)), -Infinity);
  const leaders = fair.filter((row) => merit(row.worst) === most);
  const [first] = leaders;
  const near = fair.filter((row) => row !== first && !(first.low > row.high));
  return { leaders, near, sure: fair.length > 0 && fair.every((row) => row.low !== null) };
}

const unpacked = new Map();

// Curves and trace of a run, or null; they lie packed in the page until someone asks.
export function unpack(run) {
  const packed = known.details[run.index];
  if (!unpacked.has(run.index)) unpacked.set(run.index, packed ? inflate(packed) : null);
  return unpacked.get(run.index);
}

// Of the runs with equally many rounds that left curves, the one that got furthest: it has all rounds of such a curve.
export function findFurthest(run) {
  const isAlike = (other) =>
    other.status === 'ok' &&
    known.details[other.index] &&
    other.task === run.task &&
    ['rounds', 'evaluate_every'].every((name) => other.settings[name] === run.settings[name]);
  const reach = (other) => other.diverged ?? Infinity;
  return known.runs.filter(isAlike).reduce((far, other) => (reach(other) > reach(far) ? other : far), run);
}

export function tellCell(cell, digits = 1) {
  if (!cell || cell.word) return cell ? cell.word : '–';
  const spread = shown.spread === 'deviation' ? cell.deviation : cell.half;
  const behind = spread === null ? '' : ` ± ${spread.toFixed(digits)}`;
  return `${cell.mean.toFixed(digits)}${behind}${cell.diverged ? '†' : ''}${cell.failed ? '‡' : ''}`;
}
