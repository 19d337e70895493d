// Runs, cells of runs that differ in their seed, and tables of cells.

import { find, inflate } from './page.js';

export const known = JSON.parse(find('data').textContent);

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

function summarise(runs) {
  // A run that diverged is no use to anybody: it counts as 0.
  const done = runs.filter((run) => run.status === 'ok');
  const values = done.map((run) => (run.diverged === null ? run.accuracy : 0)).filter((value) => value !== null);
  const diverged = done.filter((run) => run.diverged !== null).length;
  const mean = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    mean,
    deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : null,
    seeds: values.length,
    diverged,
    failed: runs.length - done.length,
    // What stands in a number's place.
    word: values.length === 0 ? 'failed' : diverged === values.length ? 'diverged' : '',
  };
}

// A cell's table is all of its spec but the rule, the attack and the seed.
function makeCells(runs) {
  const cells = new Map();
  runs.forEach((run, index) => {
    run.index = index;
    const group = JSON.stringify([run.task, run.split, run.n, run.f, run.settings]);
    const id = JSON.stringify([group, run.method, run.attack]);
    if (!cells.has(id)) {
      const facets = Object.fromEntries(FACETS.map((facet) => [facet.name, facet.of(run)]));
      const text = `${run.method} ${run.attack} ${tellPlace(run)}`.toLowerCase();
      cells.set(id, { id, group, facets, text, rule: run.method, attack: run.attack, place: tellPlace(run), runs: [] });
    }
    cells.get(id).runs.push(run);
  });
  for (const cell of cells.values()) {
    cell.runs.sort((a, b) => a.seed - b.seed);
    Object.assign(cell, summarise(cell.runs));
  }
  return cells;
}

export const cells = makeCells(known.runs);

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
  row.worst = known.reduce((least, cell) => (least === null || cell.mean < least.mean ? cell : least), null);
  row.mean = known.length ? known.reduce((sum, cell) => sum + cell.mean, 0) / known.length : null;
  row.whole = known.length === attacks.length && !known.some((cell) => cell.failed);
}

export function findBest(table) {
  const fair = table.rows.filter((row) => row.whole && !row.worst.word);
  const most = Math.max(...fair.map((row) => row.worst.mean));
  return fair.filter((row) => row.worst.mean === most);
}

const unpacked = new Map();

// Curves and trace of a run, or null; they lie packed in the page until someone asks.
export function unpack(run) {
  const packed = known.details[run.index];
  if (!unpacked.has(run.index)) unpacked.set(run.index, packed === null ? null : inflate(packed));
  return unpacked.get(run.index);
}
