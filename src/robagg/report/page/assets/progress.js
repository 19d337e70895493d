// How the chosen cells went: accuracy, loss, tau and distances over the rounds.

import { find, make } from './page.js';
import { term } from './words.js';
import { meanOf, nameOf, spreadOf } from './data.js';
import { lineFigure } from './curves.js';

let log = false;

export function drawCurves(picked, traces, furthest, again) {
  const note = picked.some((cell) => cell.runs.length > 1)
    ? `The mean over the seeds and its 95 % interval (of two seeds: from one to the other).${picked.length > 1 ? '' : ' Thin: each seed.'}`
    : '';
  const pair = (name) => (trace) => (trace[name] ? trace.rounds.map((round, k) => [round, trace[name][k]]) : []);
  const tellOwn = (trace, run) => tellCurve(trace, run, traces.get(furthest.get(run)));
  const accuracy = makeSeries(picked, traces, tellOwn, true);
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

// A run that diverged counts as 0 from there on, as in the tables, as far as the furthest of its length.
function tellCurve(trace, run, furthest) {
  if (run.diverged === null) return trace.curve;
  const end = trace.curve.length ? trace.curve.at(-1)[0] : 0;
  return [...trace.curve, ...furthest.curve.filter(([round]) => round > end).map(([round]) => [round, 0])];
}

// One line per cell, the mean over its seeds, with its band; and thin ones for the seeds where one cell is chosen.
function makeSeries(picked, traces, pointsOf, percent = false) {
  return picked.flatMap((cell, slot) => {
    const runs = cell.runs.filter((run) => traces.get(run));
    const lines = runs
      .map((run) => ({
        label: `${nameOf(cell, picked)}, seed ${run.seed}`,
        slot,
        points: pointsOf(traces.get(run), run),
        thin: true,
        quiet: true,
      }))
      .filter(({ points }) => points.length);
    if (!lines.length) return [];
    const single = picked.length === 1 && lines.length > 1 ? lines : [];
    return [...single, { label: nameOf(cell, picked), slot, ...average(lines, percent) }];
  });
}

// At each round that all have: the mean, and the band about it.
function average(lines, percent) {
  const values = new Map();
  for (const { points } of lines) {
    for (const [round, value] of points) {
      if (value === null) continue;
      if (!values.has(round)) values.set(round, []);
      values.get(round).push(value);
    }
  }
  const whole = [...values].filter(([, found]) => found.length === lines.length).sort((a, b) => a[0] - b[0]);
  return {
    points: whole.map(([round, found]) => [round, meanOf(found)]),
    band: lines.length > 1 ? whole.map(([round, found]) => [round, ...spreadOf(found, percent)]) : [],
  };
}
