// Whom the rules believed, what mistakes they made, and what the clients had to tell.

import { find, make } from './page.js';
import { term } from './words.js';
import { known, nameOf } from './data.js';
import { makeFigure } from './figure.js';
import {
  hoverLabels,
  hoverWeights,
  listLabels,
  listWeights,
  paintLabels,
  paintWeights,
  tellWeights,
} from './heatmap.js';
import { lineFigure } from './curves.js';

let seed = null;

export function drawBelief(picked, traces, again) {
  const seeds = [...new Set(picked.flatMap((cell) => cell.runs.map((run) => run.seed)))].sort((a, b) => a - b);
  if (!seeds.includes(seed)) [seed] = seeds;
  const select = make('select', { id: 'seed' }, ...seeds.map((value) => make('option', { value }, String(value))));
  select.value = String(seed);
  select.addEventListener('change', async () => {
    seed = Number(select.value);
    await again();
    find('seed').focus();
  });
  const parts = picked
    .map((cell) => cell.runs.find((run) => run.seed === seed))
    .filter(Boolean)
    .flatMap((run) => {
      const trace = traces.get(run);
      const name = nameOf(
        picked.find((cell) => cell.runs.includes(run)),
        picked,
      );
      if (!trace?.weights || !trace.rounds.length) return [make('p', {}, `${name}: this run left no weights.`)];
      return [
        makeFigure({
          title: `Weights: ${name}, seed ${run.seed}`,
          note: tellWeights(run, trace),
          paint: paintWeights(run, trace),
          data: () => listWeights(run, trace),
          hover: hoverWeights(run, trace),
        }),
        drawMistakes(run, trace, name),
      ];
    });
  return [
    make('h3', {}, 'Who was believed'),
    make(
      'p',
      { class: 'quiet' },
      'The ',
      term('weight'),
      ' of each ',
      term('client'),
      ' in each round. Rows marked in colour and bold are ',
      term('Byzantine'),
      '.',
    ),
    make('label', { class: 'switch' }, term('seed', 'Seed'), ' ', select),
    make('div', { class: 'grid' }, ...parts),
  ];
}

function drawMistakes(run, trace, name) {
  const series = [
    {
      label: `honest dropped (of ${run.n - run.f})`,
      slot: 0,
      points: trace.rounds.map((round, k) => [round, trace.honest_dropped[k]]),
    },
    {
      label: `Byzantine kept (of ${run.f})`,
      slot: 1,
      points: trace.rounds.map((round, k) => [round, trace.byzantine_kept[k]]),
    },
  ];
  const mean = (points) => (points.reduce((sum, [, value]) => sum + value, 0) / points.length).toFixed(1);
  const note = `On average ${mean(series[0].points)} of ${run.n - run.f} honest clients were dropped and ${mean(series[1].points)} of ${run.f} Byzantine ones kept.`;
  return lineFigure(`Mistakes: ${name}, seed ${run.seed}`, note, series, {
    y: 'clients',
    least: 0,
    most: Math.max(run.n - run.f, run.f),
    step: true,
    whole: true,
  });
}

export function drawSplits(picked) {
  const tables = new Map();
  for (const run of picked.flatMap((cell) => cell.runs).filter((one) => one.seed === seed)) tables.set(run.labels, run);
  const parts = [...tables].map(([index, run]) => {
    const { counts, missing } = known.labels[index];
    const name = `${run.task}, ${run.rho === null ? run.split : `rho ${run.rho}`}, n ${run.n}, f ${run.f}, seed ${run.seed}`;
    if (!counts) return make('p', {}, `${name}: ${missing}.`);
    return makeFigure({
      title: `Labels: ${name}`,
      note: 'Samples of each label that each client holds, before any attack touches them.',
      paint: paintLabels(run, counts),
      data: () => listLabels(run, counts),
      hover: hoverLabels(run, counts),
    });
  });
  return [make('h3', {}, 'How the data was split'), make('div', { class: 'grid' }, ...parts)];
}
