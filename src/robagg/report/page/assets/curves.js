// Lines over the rounds.

import { draw } from './page.js';
import { DASHES, MARKERS, logTicks, tell, tickValues } from './scales.js';
import { makeFigure, measure, sheet, shorten, write } from './figure.js';

const LEFT = 58;
const RIGHT = 14;
const TOP = 10;
const PLOT = 210;
const ROW = 20;

// A series: {label, slot (its colour), points: [[round, value or null], ...], band: [[round, low, high], ...], thin,
// quiet (not in the legend)}.
// Options: {label, x (what is across, if not rounds), y, least, most, log, step, whole}.
function paintLines(series, options) {
  return (width, colours) => {
    const frame = lay(series, options, width);
    const legend = arrangeLegend(series, width - LEFT - RIGHT);
    const height = TOP + PLOT + 42 + legend.rows * ROW + 6;
    const picture = sheet(width, height, colours, options.label);
    drawAxes(picture, frame, options, width, colours);
    for (const one of series) drawBand(picture, one, frame, colours);
    for (const one of series) drawLine(picture, one, frame, options, colours);
    drawLegend(picture, legend, TOP + PLOT + 52, colours);
    return picture;
  };
}

function lay(series, options, width) {
  const edges = (one) => (one.band ?? []).flatMap(([round, low, high]) => [[round, low], [round, high]]);
  const points = series
    .flatMap((one) => [...one.points, ...edges(one)])
    .filter(([, value]) => value !== null && (!options.log || value > 0));
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [first, last] = options.x
    ? [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)]
    : [0, xs.reduce((a, b) => Math.max(a, b), 1)];
  let least = options.least ?? (ys.length ? ys.reduce((a, b) => Math.min(a, b)) : 0);
  let most = options.most ?? (ys.length ? ys.reduce((a, b) => Math.max(a, b)) : 1);
  if (least === most) [least, most] = options.log ? [least / 2, most * 2] : [least - 1, most + 1];
  const warp = options.log ? Math.log10 : (value) => value;
  const inner = width - LEFT - RIGHT;
  return {
    first,
    last,
    whole: xs.every(Number.isInteger),
    least,
    most,
    x: (round) => LEFT + ((round - first) / (last - first || 1)) * inner,
    y: (value) => TOP + PLOT - ((warp(value) - warp(least)) / (warp(most) - warp(least))) * PLOT,
    roundAt: (x) => first + ((x - LEFT) / inner) * (last - first),
  };
}

function drawAxes(picture, frame, options, width, colours) {
  const ticks = options.log ? logTicks(frame.least, frame.most) : tickValues(frame.least, frame.most, 5);
  for (const tick of ticks.filter((value) => !options.whole || Number.isInteger(value))) {
    const y = frame.y(tick);
    picture.append(draw('line', { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, stroke: colours.grid }));
    picture.append(write(tell(tick), LEFT - 8, y + 4, colours, { 'text-anchor': 'end', fill: colours.quiet }));
  }
  const across = tickValues(frame.first, frame.last, Math.floor(width / (options.x ? 45 : 90)));
  for (const tick of across.filter((value) => !frame.whole || Number.isInteger(value))) {
    const x = frame.x(tick);
    picture.append(draw('line', { x1: x, x2: x, y1: TOP + PLOT, y2: TOP + PLOT + 5, stroke: colours.quiet }));
    picture.append(write(options.x ? tell(tick) : String(tick), x, TOP + PLOT + 18, colours, { 'text-anchor': 'middle', fill: colours.quiet }));
  }
  picture.append(draw('line', { x1: LEFT, x2: width - RIGHT, y1: TOP + PLOT, y2: TOP + PLOT, stroke: colours.quiet }));
  picture.append(write(options.x ?? 'round', (LEFT + width - RIGHT) / 2, TOP + PLOT + 34, colours, { 'text-anchor': 'middle' }));
  const middle = TOP + PLOT / 2;
  picture.append(
    write(options.y, 14, middle, colours, { 'text-anchor': 'middle', transform: `rotate(-90 14 ${middle})` }),
  );
}

// What sticks out of the frame is cut, as is what a logarithm has no place for.
function drawBand(picture, one, frame, colours) {
  if (!one.band?.length) return;
  const inside = (value) => frame.y(Math.min(frame.most, Math.max(frame.least, value))).toFixed(1);
  const edge = (points) => points.map(([round, value]) => `${frame.x(round).toFixed(1)} ${inside(value)}`);
  const low = one.band.map(([round, value]) => [round, value]);
  const high = one.band.map(([round, , value]) => [round, value]).reverse();
  picture.append(
    draw('path', {
      d: `M${[...edge(low), ...edge(high)].join('L')}Z`,
      class: 'band',
      fill: colours.series[one.slot],
      'fill-opacity': 0.18,
    }),
  );
}

function drawLine(picture, one, frame, options, colours) {
  const colour = colours.series[one.slot];
  let path = '';
  let before = null;
  for (const [round, value] of one.points) {
    const drawn = value !== null && (!options.log || value > 0);
    if (drawn) {
      const [x, y] = [frame.x(round).toFixed(1), frame.y(value).toFixed(1)];
      path += before === null ? `M${x} ${y}` : options.step ? `H${x}V${y}` : `L${x} ${y}`;
    }
    before = drawn ? value : null;
  }
  picture.append(
    draw('path', {
      d: path || 'M0 0',
      fill: 'none',
      stroke: colour,
      'stroke-width': one.thin ? 1 : 2.2,
      'stroke-opacity': one.thin ? 0.55 : 1,
      'stroke-dasharray': one.thin ? '' : DASHES[one.slot],
      'stroke-linejoin': 'round',
    }),
  );
  if (one.thin) return;
  const drawn = one.points.filter(([, value]) => value !== null && (!options.log || value > 0));
  const every = options.x ? 1 : Math.max(1, Math.ceil(drawn.length / 8));
  drawn.forEach(([round, value], k) => {
    if (k % every === 0 || k === drawn.length - 1)
      picture.append(marker(one.slot, frame.x(round), frame.y(value), colour));
  });
}

function marker(slot, x, y, fill) {
  const shapes = {
    circle: `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`,
    square: `M${x - 3} ${y - 3}h6v6h-6z`,
    triangle: `M${x} ${y - 4}l4 7h-8z`,
    diamond: `M${x} ${y - 4.5}l4 4.5l-4 4.5l-4 -4.5z`,
    cross: `M${x - 4} ${y - 1.2}h2.8v-2.8h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8z`,
    down: `M${x} ${y + 4}l4 -7h-8z`,
  };
  return draw('path', { d: shapes[MARKERS[slot]], fill });
}

function arrangeLegend(series, room) {
  const entries = [];
  let [x, row] = [0, 0];
  for (const one of series.filter((line) => !line.quiet)) {
    const text = shorten(one.label, room - 40);
    const width = 34 + measure(text) + 16;
    if (x > 0 && x + width > room) [x, row] = [0, row + 1];
    entries.push({ one, text, x: LEFT + x, row });
    x += width;
  }
  return { entries, rows: entries.length ? row + 1 : 0 };
}

function drawLegend(picture, legend, top, colours) {
  for (const { one, text, x, row } of legend.entries) {
    const y = top + row * ROW;
    const colour = colours.series[one.slot];
    picture.append(
      draw('line', {
        x1: x,
        x2: x + 26,
        y1: y,
        y2: y,
        stroke: colour,
        'stroke-width': one.thin ? 1 : 2.2,
        'stroke-dasharray': one.thin ? '' : DASHES[one.slot],
      }),
    );
    if (!one.thin) picture.append(marker(one.slot, x + 13, y, colour));
    picture.append(write(text, x + 32, y + 4, colours));
  }
}

function hoverLines(series, options) {
  return (x, y, width) => {
    if (x < LEFT || x > width - RIGHT) return null;
    const wanted = lay(series, options, width).roundAt(x);
    const rounds = series.flatMap((one) => one.points.map(([round]) => round));
    if (!rounds.length) return null;
    const round = rounds.reduce((best, at) => (Math.abs(at - wanted) < Math.abs(best - wanted) ? at : best));
    const drawn = series.map((one) => [one.label, one.points.find(([at]) => at === round)]).filter(([, point]) => point);
    return [`${options.x ?? 'round'} ${options.x ? tell(round) : round}`, ...drawn.map(([label, point]) => `${label}: ${tell(point[1], 4)}`)];
  };
}

function listLines(series, { x = 'round', y }) {
  const bands = series.some((one) => one.band?.length);
  const rows = series.flatMap((one) => {
    const ends = new Map(one.band?.map(([round, low, high]) => [round, [low, high]]));
    return one.points.map(([round, value]) => [
      ...[one.label, round, value],
      ...(bands ? (ends.get(round) ?? [null, null]) : []),
    ]);
  });
  return { head: ['line', x, y, ...(bands ? ['from', 'to'] : [])], rows };
}

export function lineFigure(title, note, series, options) {
  return makeFigure({
    title,
    note,
    paint: paintLines(series, { label: title, ...options }),
    data: () => listLines(series, options),
    hover: hoverLines(series, options),
  });
}
