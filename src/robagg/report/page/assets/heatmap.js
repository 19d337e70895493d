// Clients down, rounds or labels across; the last f clients are Byzantine and marked.

import { draw } from './page.js';
import { css, inkOn, shade, tell, tickValues } from './scales.js';
import { measure, sheet, write } from './figure.js';

const LEFT = 84;
const RIGHT = 14;
const TOP = 22;
const LEVELS = 48;

function rowHeight(n) {
  return n <= 30 ? 14 : Math.max(3, Math.floor(420 / n));
}

function place(x, y, width, n, columns) {
  const column = Math.floor(((x - LEFT) / (width - LEFT - RIGHT)) * columns);
  const client = Math.floor((y - TOP) / rowHeight(n));
  return column >= 0 && column < columns && client >= 0 && client < n ? { column, client } : null;
}

function drawClients(picture, n, f, width, colours) {
  const tall = rowHeight(n);
  const [split, end] = [TOP + (n - f) * tall, TOP + n * tall];
  const every = Math.ceil(13 / tall);
  for (let client = 0; client < n; client += every) {
    const bad = client >= n - f;
    picture.append(
      write(String(client), LEFT - 8, TOP + (client + 0.5) * tall + 4, colours, {
        'text-anchor': 'end',
        'font-size': 11,
        fill: bad ? colours.warn : colours.quiet,
        'font-weight': bad ? 700 : 400,
      }),
    );
  }
  bracket(picture, 'honest', TOP, split, colours.quiet, colours);
  if (!f) return;
  bracket(picture, 'Byzantine', split, end, colours.warn, colours);
  picture.append(
    draw('line', { x1: LEFT - 30, x2: width - RIGHT, y1: split, y2: split, stroke: colours.warn, 'stroke-width': 2 }),
  );
}

function bracket(picture, text, top, end, colour, colours) {
  picture.append(draw('line', { x1: 32, x2: 32, y1: top + 2, y2: end - 2, stroke: colour, 'stroke-width': 3 }));
  const middle = (top + end) / 2;
  const fits = [text, `${text.slice(0, 3)}.`, text[0]].find((shown) => measure(shown, 11) <= end - top) ?? '';
  picture.append(
    write(fits, 22, middle, colours, {
      fill: colour,
      'font-size': 11,
      'text-anchor': 'middle',
      transform: `rotate(-90 22 ${middle})`,
    }),
  );
}

// One path a colour: a few dozen elements, however many clients and rounds there are.
function drawPatches(picture, n, columns, width, colours, shareOf) {
  const tall = rowHeight(n);
  const wide = (width - LEFT - RIGHT) / columns;
  const paths = new Map();
  for (let client = 0; client < n; client += 1) {
    let [begin, level] = [0, null];
    for (let column = 0; column <= columns; column += 1) {
      const share = column < columns ? shareOf(client, column) : undefined;
      const next = share === null || share === undefined ? share : Math.round(share * LEVELS);
      if (column > 0 && next !== level) {
        // On whole pixels, or hairlines of the paper show between neighbours.
        const [left, right] = [begin, column].map((edge) => Math.round(LEFT + edge * wide));
        const patch = `M${left} ${TOP + client * tall}H${right}v${tall}H${left}z`;
        paths.set(level, (paths.get(level) ?? '') + patch);
        begin = column;
      }
      level = next;
    }
  }
  for (const [level, d] of paths) {
    picture.append(
      draw('path', {
        d,
        fill: level === null ? colours.hatch : css(shade(level / LEVELS)),
        'shape-rendering': 'crispEdges',
      }),
    );
  }
}

function drawScale(picture, y, most, text, width, colours, missing) {
  const long = Math.min(160, width / 3);
  for (let k = 0; k < 32; k += 1) {
    picture.append(
      draw('rect', { x: LEFT + (k * long) / 32, y, width: long / 32 + 0.5, height: 10, fill: css(shade(k / 31)) }),
    );
  }
  picture.append(write('0', LEFT, y + 24, colours, { fill: colours.quiet, 'text-anchor': 'middle' }));
  picture.append(write(most, LEFT + long, y + 24, colours, { fill: colours.quiet, 'text-anchor': 'middle' }));
  picture.append(write(text, LEFT + long + 10, y + 10, colours));
  if (!missing) return;
  picture.append(draw('rect', { x: LEFT + long + 24, y: y + 15, width: 12, height: 10, fill: colours.hatch }));
  picture.append(write('not asked', LEFT + long + 42, y + 24, colours));
}

function weightOf(run, details) {
  return (client, column) => {
    const level = details.weights[column * run.n + client];
    return level === 255 || level === undefined ? null : (level / 254) * details.most;
  };
}

export function paintWeights(run, details) {
  const { n, f } = run;
  const columns = details.rounds.length;
  const weight = weightOf(run, details);
  const missing = details.weights.includes(255);
  return (width, colours) => {
    const bottom = TOP + n * rowHeight(n);
    const picture = sheet(width, bottom + 74, colours, tellWeights(run, details));
    drawPatches(picture, n, columns, width, colours, (client, column) => {
      const value = weight(client, column);
      return value === null ? null : value / details.most;
    });
    drawClients(picture, n, f, width, colours);
    picture.append(write('client', LEFT - 8, TOP - 8, colours, { 'text-anchor': 'end' }));
    const wide = (width - LEFT - RIGHT) / columns;
    const last = details.rounds[columns - 1];
    for (const tick of tickValues(details.rounds[0], last, Math.floor(width / 100)).filter(Number.isInteger)) {
      const column = details.rounds.findIndex((round) => round >= tick);
      const x = LEFT + (column + 0.5) * wide;
      picture.append(write(String(tick), x, bottom + 15, colours, { 'text-anchor': 'middle', fill: colours.quiet }));
    }
    picture.append(write('round', (LEFT + width - RIGHT) / 2, bottom + 31, colours, { 'text-anchor': 'middle' }));
    drawScale(picture, bottom + 42, tell(details.most), 'weight', width, colours, missing);
    return picture;
  };
}

// Who was believed, in a sentence.
export function tellWeights(run, details) {
  const weight = weightOf(run, details);
  const sums = Array.from({ length: run.n }, (_, client) =>
    details.rounds.reduce((sum, _round, column) => sum + (weight(client, column) ?? 0), 0),
  );
  const all = sums.reduce((a, b) => a + b, 0);
  if (all === 0) return `${run.method} under ${run.attack}: no client got any weight.`;
  const bad = sums.slice(run.n - run.f).reduce((a, b) => a + b, 0);
  const top = sums.indexOf(Math.max(...sums));
  const share = run.f
    ? `The Byzantine clients got ${((100 * bad) / all).toFixed(1)} % of the weight that clients got`
    : 'All clients are honest';
  const most = `client ${top}${top >= run.n - run.f ? ' (Byzantine)' : ''} got the most, ${((100 * sums[top]) / all).toFixed(1)} %`;
  const silent = details.rounds.filter((_, column) => sums.every((_sum, client) => !weight(client, column))).length;
  const nobody = silent ? ` In ${silent} of the ${details.rounds.length} rounds shown nobody got any.` : '';
  return `${share}; ${most}.${nobody}`;
}

export function hoverWeights(run, details) {
  const weight = weightOf(run, details);
  return (x, y, width) => {
    const at = place(x, y, width, run.n, details.rounds.length);
    if (!at) return null;
    const value = weight(at.client, at.column);
    const who = `client ${at.client}${at.client >= run.n - run.f ? ', Byzantine' : ''}`;
    return [who, `round ${details.rounds[at.column]}`, value === null ? 'not asked' : `weight ${tell(value)}`];
  };
}

export function listWeights(run, details) {
  const weight = weightOf(run, details);
  const head = [
    'round',
    ...Array.from({ length: run.n }, (_, client) => `client ${client}${client >= run.n - run.f ? ' (Byzantine)' : ''}`),
  ];
  return {
    head,
    rows: details.rounds.map((round, column) => [round, ...head.slice(1).map((_, client) => weight(client, column))]),
  };
}

export function paintLabels(run, counts) {
  const classes = counts[0].length;
  const most = Math.max(1, ...counts.flat());
  return (width, colours) => {
    const tall = rowHeight(run.n);
    const bottom = TOP + run.n * tall;
    const wide = (width - LEFT - RIGHT) / classes;
    const picture = sheet(
      width,
      bottom + 74,
      colours,
      `Samples of each of ${classes} labels that each of ${run.n} clients holds`,
    );
    drawPatches(picture, run.n, classes, width, colours, (client, label) => counts[client][label] / most);
    const printed = tall >= 12 && wide >= measure(String(most), 10) + 4;
    counts.forEach((row, client) =>
      row.forEach((value, label) => {
        if (!printed) return;
        const [x, y] = [LEFT + (label + 0.5) * wide, TOP + (client + 0.5) * tall + 3.5];
        const fill = inkOn(shade(Math.round((value / most) * LEVELS) / LEVELS));
        picture.append(draw('text', { x, y, fill, 'text-anchor': 'middle', 'font-size': 10 }, String(value)));
      }),
    );
    drawClients(picture, run.n, run.f, width, colours);
    picture.append(write('client', LEFT - 8, TOP - 8, colours, { 'text-anchor': 'end' }));
    const every = Math.ceil((measure(String(classes)) + 8) / wide);
    for (let label = 0; label < classes; label += every) {
      picture.append(
        write(String(label), LEFT + (label + 0.5) * wide, bottom + 15, colours, {
          'text-anchor': 'middle',
          fill: colours.quiet,
        }),
      );
    }
    picture.append(write('label', (LEFT + width - RIGHT) / 2, bottom + 31, colours, { 'text-anchor': 'middle' }));
    drawScale(picture, bottom + 42, String(most), 'samples', width, colours, false);
    return picture;
  };
}

export function hoverLabels(run, counts) {
  return (x, y, width) => {
    const at = place(x, y, width, run.n, counts[0].length);
    return at && [`client ${at.client}, label ${at.column}`, `${counts[at.client][at.column]} samples`];
  };
}

export function listLabels(run, counts) {
  const rows = counts.map((row, client) => [client, client >= run.n - run.f ? 'yes' : 'no', ...row]);
  return { head: ['client', 'Byzantine', ...counts[0].map((_, label) => `label ${label}`)], rows };
}
