// What lies behind the chosen cells: curves, who was believed, how the data was split, and each run's spec.

import { button, find, make } from './page.js';
import { term } from './words.js';
import { known, unpack } from './data.js';
import { MOST_SERIES, palette, tell, tellAccuracy, tellSeconds } from './scales.js';
import { copyButtons } from './export.js';
import { drawFigures, makeFigure } from './figure.js';
import { hoverLines, listLines, paintLines } from './curves.js';
import { hoverLabels, hoverWeights, listLabels, listWeights, paintLabels, paintWeights, tellWeights } from './heatmap.js';

let log = false;
let seed = null;
let turn = 0;

export async function drawDetails(picked, choose, clear) {
  const mine = ++turn;
  const traces = new Map();
  await Promise.all(picked.flatMap((cell) => cell.runs).map(async (run) => traces.set(run, await unpack(run))));
  if (mine !== turn) return; // the reader has chosen something else meanwhile
  const again = () => drawDetails(picked, choose, clear);
  const area = find('chosen');
  area.replaceChildren(make('h2', {}, 'The chosen cells'), drawChips(picked, choose, clear));
  if (picked.length) {
    area.append(...drawCurves(picked, traces, again), ...drawBelief(picked, traces, again), ...drawSplits(picked), ...drawRuns(picked));
  }
  drawFigures();
}

function nameOf(cell, picked) {
  const lone = picked.every((other) => other.place === cell.place);
  return lone ? `${cell.rule} under ${cell.attack}` : `${cell.rule} under ${cell.attack} (${cell.place})`;
}

function fileName(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60) || 'figure';
}

function drawChips(picked, choose, clear) {
  if (!picked.length) return make('p', {}, 'None is chosen. Choose a cell of a table above to see how its runs went.');
  const chips = picked.map((cell, slot) => {
    const number = make('span', { class: 'slot', 'aria-hidden': 'true' }, String(slot + 1));
    number.style.background = palette().series[slot];
    return make('li', {}, number, make('span', {}, `${nameOf(cell, picked)}: ${tellAccuracy(cell)}`),
      button('×', () => choose(cell), { class: 'small', 'aria-label': `Take away ${nameOf(cell, picked)}` }));
  });
  return make('div', {}, make('ul', { class: 'chips' }, ...chips),
    make('p', { class: 'quiet' }, `All with ${picked.every((cell) => cell.place === picked[0].place) ? picked[0].place : 'their own settings'}; up to ${MOST_SERIES} cells can be compared. `,
      button('Clear all', clear, { class: 'small' })));
}

// One cell: a line a seed. Several: a line a cell, its mean over seeds, and thin ones for the seeds.
function makeSeries(picked, traces, pointsOf) {
  if (picked.length === 1) {
    return picked[0].runs.filter((run) => traces.get(run)).slice(0, MOST_SERIES)
      .map((run, slot) => ({ label: `seed ${run.seed}`, slot, points: pointsOf(traces.get(run)) }))
      .filter(({ points }) => points.length);
  }
  return picked.flatMap((cell, slot) => {
    const lines = cell.runs.filter((run) => traces.get(run))
      .map((run) => ({ label: `${nameOf(cell, picked)}, seed ${run.seed}`, slot, points: pointsOf(traces.get(run)), thin: true, quiet: true }))
      .filter(({ points }) => points.length);
    return lines.length ? [...lines, { label: nameOf(cell, picked), slot, points: average(lines) }] : [];
  });
}

function average(lines) {
  const sums = new Map();
  for (const { points } of lines) {
    for (const [round, value] of points) {
      if (value !== null) sums.set(round, [...(sums.get(round) ?? []), value]);
    }
  }
  return [...sums].filter(([, values]) => values.length === lines.length).sort((a, b) => a[0] - b[0])
    .map(([round, values]) => [round, values.reduce((a, b) => a + b, 0) / values.length]);
}

function lineFigure(title, note, series, options) {
  return makeFigure({
    title, note, name: fileName(title), paint: paintLines(series, { label: title, ...options }),
    data: () => listLines(series, options.y), hover: hoverLines(series, options),
  });
}

function drawCurves(picked, traces, again) {
  const many = picked.length > 1;
  const note = many ? 'Thick: the mean over seeds. Thin: each seed.' : `A line a seed: ${nameOf(picked[0], picked)}.`;
  const pair = (name) => (trace) => (trace[name] ? trace.rounds.map((round, k) => [round, trace[name][k]]) : []);
  const accuracy = makeSeries(picked, traces, (trace) => trace.curve);
  const loss = makeSeries(picked, traces, pair('loss'));
  const tau = makeSeries(picked, traces, pair('tau'));
  if (!accuracy.length && !loss.length) return [make('h3', {}, 'Curves'), make('p', {}, 'These runs left no curves.')];
  const switcher = make('label', { class: 'switch' }, make('input', { type: 'checkbox', id: 'log' }), ' logarithmic loss and tau');
  switcher.firstChild.checked = log;
  switcher.firstChild.addEventListener('change', async (event) => {
    log = event.target.checked;
    await again();
    find('log').focus();
  });
  const figures = [
    lineFigure('Accuracy over the rounds', note, accuracy, { y: 'test accuracy (%)', least: 0, most: 100 }),
    lineFigure('Training loss of the honest clients', note, loss, { y: 'loss', log, least: log ? undefined : 0 }),
  ];
  if (tau.length) figures.push(lineFigure('Tau over the rounds', 'The radius within which a vector is trusted.', tau, { y: 'tau', log, least: log ? undefined : 0 }));
  return [make('h3', {}, 'Curves'), switcher, make('div', { class: 'grid' }, ...figures),
    ...(tau.length ? [] : [make('p', { class: 'quiet' }, 'These rules have no ', term('tau'), '.')])];
}

function drawBelief(picked, traces, again) {
  const seeds = [...new Set(picked.flatMap((cell) => cell.runs.map((run) => run.seed)))].sort((a, b) => a - b);
  if (!seeds.includes(seed)) [seed] = seeds;
  const select = make('select', { id: 'seed' }, ...seeds.map((value) => make('option', { value }, String(value))));
  select.value = String(seed);
  select.addEventListener('change', async () => {
    seed = Number(select.value);
    await again();
    find('seed').focus();
  });
  const parts = picked.map((cell) => cell.runs.find((run) => run.seed === seed)).filter(Boolean).flatMap((run) => {
    const trace = traces.get(run);
    const name = nameOf(picked.find((cell) => cell.runs.includes(run)), picked);
    if (!trace?.weights || !trace.rounds.length) return [make('p', {}, `${name}: this run left no weights.`)];
    return [
      makeFigure({
        title: `Weights: ${name}, seed ${run.seed}`, note: tellWeights(run, trace), name: fileName(`weights ${name} seed ${run.seed}`),
        paint: paintWeights(run, trace), data: () => listWeights(run, trace), hover: hoverWeights(run, trace),
      }),
      drawMistakes(run, trace, name),
    ];
  });
  return [
    make('h3', {}, 'Who was believed'),
    make('p', { class: 'quiet' }, 'The ', term('weight'), ' of each ', term('client'), ' in each round. Rows marked in colour and bold are ', term('Byzantine'), '.'),
    make('label', { class: 'switch' }, term('seed', 'Seed'), ' ', select), make('div', { class: 'grid' }, ...parts)];
}

function drawMistakes(run, trace, name) {
  const series = [
    { label: `honest dropped (of ${run.n - run.f})`, slot: 0, points: trace.rounds.map((round, k) => [round, trace.honest_dropped[k]]) },
    { label: `Byzantine kept (of ${run.f})`, slot: 1, points: trace.rounds.map((round, k) => [round, trace.byzantine_kept[k]]) },
  ];
  const mean = (points) => points.reduce((sum, [, value]) => sum + value, 0) / points.length;
  const note = `On average ${tell(mean(series[0].points))} of ${run.n - run.f} honest clients were dropped and ${tell(mean(series[1].points))} of ${run.f} Byzantine ones kept.`;
  return lineFigure(`Mistakes: ${name}, seed ${run.seed}`, note, series, { y: 'clients', least: 0, most: Math.max(run.n - run.f, run.f), step: true, whole: true });
}

function drawSplits(picked) {
  const tables = new Map();
  for (const run of picked.flatMap((cell) => cell.runs).filter((one) => one.seed === seed)) tables.set(run.labels, run);
  const parts = [...tables].map(([index, run]) => {
    const { counts, missing } = known.labels[index];
    const name = `${run.task}, ${run.rho === null ? run.split : `rho ${run.rho}`}, n ${run.n}, f ${run.f}, seed ${run.seed}`;
    if (!counts) return make('p', {}, `${name}: ${missing}.`);
    return makeFigure({
      title: `Labels: ${name}`, note: 'Samples of each label that each client holds, before any attack touches them.', name: fileName(`labels ${name}`),
      paint: paintLabels(run, counts), data: () => listLabels(run, counts), hover: hoverLabels(run, counts),
    });
  });
  return [make('h3', {}, 'How the data was split'), make('div', { class: 'grid' }, ...parts)];
}

function drawRuns(picked) {
  const runs = picked.flatMap((cell) => cell.runs);
  const head = ['rule', 'attack', 'seed', 'result', 'rounds', 'seconds', 'device', 'finished', 'key'];
  const rows = runs.map((run) => [
    run.method, run.attack, run.seed, tellResult(run), run.done ?? '–', run.seconds ?? '–', known.environments[run.environment].device_name ?? '–', run.finished ?? '–', run.key]);
  const model = () => ({ title: 'runs', head, rows });
  const specs = runs.map((run) => make('details', {}, make('summary', {}, `Spec: ${run.method}, ${run.attack}, seed ${run.seed}`), make('pre', { tabindex: 0 }, tellSpec(run))));
  return [make('h3', {}, 'The runs'), make('div', { class: 'card' }, plainTable('The runs of the chosen cells', head, rows), copyButtons(model)), ...specs];
}

export function tellResult(run) {
  if (run.status !== 'ok') return 'failed';
  if (run.diverged !== null) return `diverged in round ${run.diverged}`;
  return run.accuracy === null ? 'no accuracy' : `${run.accuracy.toFixed(2)} %`;
}

function tellSpec(run) {
  const { rule, attack, task, split, n, f, seed: number, settings, plugins, notes } = run;
  return JSON.stringify({ rule, attack, task, split, n, f, seed: number, settings, plugins, notes, environment: known.environments[run.environment], time: tellSeconds(run.seconds) }, null, 2);
}

export function plainTable(label, head, rows) {
  return make('div', { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, make('table', { class: 'plain' },
    make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((text) => make('td', {}, String(text))))))));
}
