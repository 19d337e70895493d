// How the chosen cells went: accuracy, loss, tau and distances over the rounds.

import { find, make } from './page.js';
import { term } from './words.js';
import { nameOf } from './data.js';
import { MOST_SERIES } from './scales.js';
import { lineFigure } from './curves.js';

let log = false;

export function drawCurves(picked, traces, again) {
  const many = picked.length > 1;
  const note = many ? 'Thick: the mean over seeds. Thin: each seed.' : `One line per seed: ${nameOf(picked[0], picked)}.`;
  const pair = (name) => (trace) => (trace[name] ? trace.rounds.map((round, k) => [round, trace[name][k]]) : []);
  const accuracy = makeSeries(picked, traces, (trace) => trace.curve);
  const loss = makeSeries(picked, traces, pair('loss'));
  const tau = makeSeries(picked, traces, pair('tau'));
  const distances = [
    ['honest', makeSeries(picked, traces, pair('honest_distance'))],
    ['Byzantine', makeSeries(picked, traces, pair('byzantine_distance'))],
  ];
  if (!accuracy.length && !loss.length) return [make('h3', {}, 'Curves'), make('p', {}, 'These runs left no curves.')];
  const switcher = make(
    'label',
    { class: 'switch' },
    make('input', { type: 'checkbox', id: 'log' }),
    ' logarithmic loss, tau and distances',
  );
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
  if (tau.length)
    figures.push(
      lineFigure('Tau over the rounds', 'The radius within which a vector is trusted.', tau, {
        y: 'tau',
        log,
        least: log ? undefined : 0,
      }),
    );
  for (const [who, series] of distances) {
    if (series.length)
      figures.push(
        lineFigure(`Distance of the ${who} clients`, "Their mean distance from the rule's centre.", series, {
          y: 'distance',
          log,
          least: log ? undefined : 0,
        }),
      );
  }
  return [
    make('h3', {}, 'Curves'),
    switcher,
    make('div', { class: 'grid' }, ...figures),
    ...(tau.length ? [] : [make('p', { class: 'quiet' }, 'These rules have no ', term('tau'), '.')]),
  ];
}

// One cell: one line per seed. Several: one line per cell, its mean over seeds, and thin ones for the seeds.
function makeSeries(picked, traces, pointsOf) {
  if (picked.length === 1) {
    return picked[0].runs
      .filter((run) => traces.get(run))
      .slice(0, MOST_SERIES)
      .map((run, slot) => ({ label: `seed ${run.seed}`, slot, points: pointsOf(traces.get(run)) }))
      .filter(({ points }) => points.length);
  }
  return picked.flatMap((cell, slot) => {
    const lines = cell.runs
      .filter((run) => traces.get(run))
      .map((run) => ({
        label: `${nameOf(cell, picked)}, seed ${run.seed}`,
        slot,
        points: pointsOf(traces.get(run)),
        thin: true,
        quiet: true,
      }))
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
  return [...sums]
    .filter(([, values]) => values.length === lines.length)
    .sort((a, b) => a[0] - b[0])
    .map(([round, values]) => [round, values.reduce((a, b) => a + b, 0) / values.length]);
}
