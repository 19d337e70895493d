// Where rules break: the measure over f, rho, n or a setting, a line for each rule, the worst case or one attack.

import { count, drawSelect, find, groupBy, make } from './page.js';
import { compareTexts, known, merit, shown, spreadOf } from './data.js';
import { MOST_SERIES } from './scales.js';
import { drawFigures } from './figure.js';
import { lineFigure } from './curves.js';

const MOST_FIGURES = 4; // of settings that differ in something else; a filter leaves others
const WORST = 'worst case';
let axis = 'f';
let attack = WORST;

export function drawBreakdown(matching) {
  const area = find('breakdown');
  const axes = listAxes(matching);
  area.replaceChildren();
  if (!axes.length) return;
  if (!axes.includes(axis)) [axis] = axes;
  const attacks = [WORST, ...new Set(matching.map((cell) => cell.attack))];
  if (!attacks.includes(attack)) attack = WORST;
  const again = () => drawBreakdown(matching);
  const places = groupBy(matching, placeBeside);
  const figures = [...places]
    .filter(([, cells]) => new Set(cells.map((cell) => numberOf(cell, axis))).size > 1)
    .sort((a, b) => compareTexts(a[0], b[0]));
  const left = figures.length - MOST_FIGURES;
  area.append(
    make('h3', {}, `Over ${axis}`),
    make(
      'div',
      { class: 'key' },
      drawSelect('axis', 'Over', nameAll(axes), axis, (value) => {
        axis = value;
        again();
      }),
      drawSelect('under', 'Under', nameAll(attacks), attack, (value) => {
        attack = value;
        again();
      }),
    ),
    make('div', { class: 'grid' }, ...figures.slice(0, MOST_FIGURES).map(([place, cells]) => drawPlace(place, cells))),
    ...(left > 0 ? [make('p', { class: 'quiet' }, `${count(left, 'more setting')}: filter to see them.`)] : []),
  );
  drawFigures(true);
}

function nameAll(values) {
  return Object.fromEntries(values.map((value) => [value, value]));
}

function numberOf(cell, name) {
  const [run] = cell.runs;
  const value = name in FIXED ? FIXED[name](run) : run.settings[name];
  return typeof value === 'number' ? value : null;
}

const FIXED = { f: (run) => run.f, rho: (run) => run.rho, n: (run) => run.n };

function listAxes(matching) {
  const names = [...Object.keys(FIXED), ...new Set(known.runs.flatMap((run) => Object.keys(run.settings)))];
  return names.filter((name) => {
    const values = new Set(matching.map((cell) => numberOf(cell, name)).filter((value) => value !== null));
    return values.size > 1;
  });
}

// What else a cell's setting is.
function placeBeside(cell) {
  return cell.place
    .split(', ')
    .filter((part) => !part.startsWith(`${axis} `))
    .join(', ');
}

function drawPlace(place, cells) {
  const values = groupBy(cells.filter(isMeasured), (cell) => numberOf(cell, axis));
  const attacks = new Map([...values].map(([at, there]) => [at, new Set(there.map((cell) => cell.attack)).size]));
  const every = [...groupBy(cells, (cell) => cell.rule)].map(([rule, mine]) => ({ rule, ...listPoints(mine, attacks) }));
  // A rule that is not drawn everywhere may be drawn where it is easy: it comes last.
  const rules = every
    .filter(({ points }) => points.length)
    .map((one) => ({ ...one, rank: one.points.reduce((sum, { cell }) => sum + merit(cell), 0) / one.points.length }))
    .sort((a, b) => b.points.length - a.points.length || b.rank - a.rank);
  const { percent, name } = shown.measure;
  const series = rules.slice(0, MOST_SERIES).map(({ rule, points }, slot) => ({
    label: rule,
    slot,
    points: points.map(({ at, cell }) => [at, cell.mean]),
    band: points
      .filter(({ cell }) => cell.values.length > 1)
      .map(({ at, cell }) => [at, ...spreadOf(cell.values, percent)]),
  }));
  const more = rules.length > MOST_SERIES ? ` The ${MOST_SERIES} best of ${rules.length} rules: filter for others.` : '';
  const gaps = every.some(({ left }) => left)
    ? ` Values of ${axis} at which a rule lacks an attack, or seeds of it failed, are left out of its line.`
    : '';
  const what = attack === WORST ? 'The worst case over the attacks, by its mean' : `Under ${attack}, the mean`;
  return lineFigure(`${place} over ${axis}`, `${what} over the seeds and its 95 % interval.${gaps}${more}`, series, {
    x: axis,
    y: percent ? `${name.replaceAll('_', ' ')} (%)` : name,
    least: percent ? 0 : undefined,
    most: percent ? 100 : undefined,
  });
}

// Whether a cell has the measure, or would have if its runs had not failed.
function isMeasured(cell) {
  return cell.mean !== null || cell.failed > 0;
}

// At each value the cell that counts; a worst case only over as many attacks as there are at that value. And whether
// anything is left out for that.
function listPoints(cells, attacks) {
  const there = cells.filter((cell) => isMeasured(cell) && (attack === WORST || cell.attack === attack));
  const values = [...groupBy(there, (cell) => numberOf(cell, axis))].filter(([at]) => at !== null);
  const whole = values.filter(([at, mine]) =>
    attack === WORST ? mine.length === attacks.get(at) && !mine.some((cell) => cell.failed) : mine[0].mean !== null,
  );
  const points = whole
    .map(([at, mine]) => ({ at, cell: mine.reduce((worst, cell) => (merit(cell) < merit(worst) ? cell : worst)) }))
    .sort((a, b) => a.at - b.at);
  return { points, left: attack === WORST && whole.length < values.length };
}
