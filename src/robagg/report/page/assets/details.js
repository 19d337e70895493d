// What lies behind the chosen cells: which they are, how they went, and each run's spec.

import { button, find, make, plainTable } from './page.js';
import { findFurthest, known, nameOf, tellCell, unpack } from './data.js';
import { MOST_SERIES, palette, tellSeconds } from './scales.js';
import { copyButtons } from './export.js';
import { drawFigures } from './figure.js';
import { drawCurves } from './progress.js';
import { drawBelief, drawSplits } from './belief.js';

let turn = 0;

export async function drawDetails(picked, choose, clear) {
  const mine = ++turn;
  const traces = new Map();
  const runs = picked.flatMap((cell) => cell.runs);
  const furthest = new Map(runs.filter((run) => run.diverged !== null).map((run) => [run, findFurthest(run)]));
  const wanted = [...new Set([...runs, ...furthest.values()])];
  await Promise.all(wanted.map(async (run) => traces.set(run, await unpack(run))));
  if (mine !== turn) return; // the reader has chosen something else meanwhile
  const again = () => drawDetails(picked, choose, clear);
  const area = find('chosen');
  area.replaceChildren(make('h2', {}, 'The chosen cells'), drawChips(picked, choose, clear));
  if (picked.length) {
    area.append(
      ...drawCurves(picked, traces, furthest, again),
      ...drawBelief(picked, traces, again),
      ...drawSplits(picked),
      ...drawRuns(picked),
    );
  }
  drawFigures();
}

function drawChips(picked, choose, clear) {
  if (!picked.length) return make('p', {}, 'None is chosen. Choose a cell of a table above to see how its runs went.');
  const chips = picked.map((cell, slot) => {
    const number = make('span', { class: 'slot', 'aria-hidden': 'true' }, String(slot + 1));
    number.style.background = palette().series[slot];
    return make(
      'li',
      {},
      number,
      make('span', {}, `${nameOf(cell, picked)}: ${tellCell(cell)}`),
      button('×', () => choose(cell), { class: 'small', 'aria-label': `Take away ${nameOf(cell, picked)}` }),
    );
  });
  return make(
    'div',
    {},
    make('ul', { class: 'chips' }, ...chips),
    make(
      'p',
      { class: 'quiet' },
      `All with ${picked.every((cell) => cell.place === picked[0].place) ? picked[0].place : 'their own settings'}; up to ${MOST_SERIES} cells can be compared. `,
      button('Clear all', clear, { class: 'small' }),
    ),
  );
}

function drawRuns(picked) {
  const runs = picked.flatMap((cell) => cell.runs);
  const head = ['rule', 'attack', 'seed', 'result', 'rounds', 'seconds', 'device', 'finished', 'key'];
  const rows = runs.map((run) => [
    run.method,
    run.attack,
    run.seed,
    tellResult(run),
    run.done ?? '–',
    run.seconds ?? '–',
    known.environments[run.environment].device_name ?? '–',
    run.finished ?? '–',
    run.key,
  ]);
  const model = () => ({ title: 'runs', head, rows });
  const specs = runs.map((run) =>
    make(
      'details',
      {},
      make('summary', {}, `Spec: ${run.method}, ${run.attack}, seed ${run.seed}`),
      make('pre', { tabindex: 0 }, tellSpec(run)),
    ),
  );
  return [
    make('h3', {}, 'The runs'),
    make('div', { class: 'card' }, plainTable('The runs of the chosen cells', head, rows), copyButtons(model)),
    ...specs,
  ];
}

export function tellResult(run) {
  if (run.status !== 'ok') return 'failed';
  if (run.diverged !== null) return `diverged in round ${run.diverged}`;
  return run.accuracy === null ? 'no accuracy' : `${run.accuracy.toFixed(2)}\u00a0%`;
}

function tellSpec(run) {
  const { rule, attack, task, split, n, f, seed: number, settings, plugins, notes } = run;
  return JSON.stringify(
    {
      rule,
      attack,
      task,
      split,
      n,
      f,
      seed: number,
      settings,
      plugins,
      notes,
      environment: known.environments[run.environment],
      time: tellSeconds(run.seconds),
    },
    null,
    2,
  );
}
