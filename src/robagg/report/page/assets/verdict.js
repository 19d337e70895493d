// What a round says: of the client that is chosen, of the round, and of all clients in it.

import { find, make, plainTable } from './page.js';
import { term } from './words.js';
import { tell } from './scales.js';
import { copyButtons } from './export.js';
import { drawFigures } from './figure.js';
import { lineFigure } from './curves.js';
import { cut, findCell, journal, listCells, placeOf } from './rounds.js';

const POINTS = 600;
const LONG = 400; // letters of a name, from which it is scrolled
const FAR = 20; // greatest over least, from which an axis is logarithmic

export function drawVerdict({ client, round: picked }) {
  const area = find('chosen');
  const round = picked ?? journal.rounds.at(-1);
  if (!round) {
    area.replaceChildren();
    return;
  }
  const newest = picked ? '' : 'The newest: round';
  const title = `${newest || 'Round'} ${round.number}${client ? ': ' : ''}`;
  area.replaceChildren(
    make('h2', {}, title, client ? make('bdi', {}, cut(client.name)) : null),
    ...(client ? drawClient(client, round) : []),
    make('h3', {}, 'The round'),
    make('div', { class: 'card' }, drawFacts(describe(round))),
    make('h3', {}, 'Over the rounds'),
    make('div', { class: 'grid' }, ...drawCurves(client)),
    make('h3', {}, `All clients in round ${round.number}`),
    drawClients(round),
  );
  drawFigures();
}

function drawFacts(rows) {
  const given = rows.filter(([, text]) => text !== '' && text !== null && text !== undefined);
  return make('dl', {}, ...given.flatMap(([name, text]) => [make('dt', {}, name), make('dd', {}, text)]));
}

function drawClient(client, round) {
  const cell = findCell(round, client);
  if (!cell) return [make('p', {}, 'It was not asked in this round.')];
  return [
    make('p', { class: cell.state === 'rejected' ? 'warn' : null }, tellState(cell)),
    make(
      'div',
      { class: 'card' },
      drawFacts([
        ['client', writeWhole(client.name)],
        [term('weight'), cell.replied ? `${tell(100 * cell.weight)} %` : ''],
        [term('distance'), cell.distance === null ? '' : tell(cell.distance, 4)],
        ['claimed size', cell.size === null ? '' : String(cell.size)],
        [term('reputation'), `${tell(cell.reputation)} after the round`],
        ['quarantine', cell.quarantined ? 'left out of the next round' : ''],
        [term('set aside'), cell.aside],
        ['in all rounds', `asked ${client.asked}, replied ${client.replied}, rejected ${client.rejected} times`],
      ]),
    ),
  ];
}

function writeWhole(name) {
  const long = name.length > LONG ? { class: 'whole', tabindex: 0, role: 'region', 'aria-label': 'The whole name' } : {};
  return make('div', long, make('bdi', {}, name));
}

function tellState({ state, reason }) {
  const words = {
    believed: 'It was believed',
    rejected: 'It was rejected',
    clipped: 'It was believed in part',
    'not chosen': 'It was not chosen',
    'no reply': 'It did not reply',
    skipped: 'The round was skipped: its reply had no effect',
  };
  return `${words[state]}${reason && reason !== state ? `: ${reason}` : ''}.`;
}

function describe(round) {
  return [
    ['rule', round.rule],
    [term('f', 'f in force'), `${tell(round.f)} (asked for: ${round.fAsked})`],
    ['clients', `${round.asked} asked, ${round.answered} replied, ${round.rejected.length} rejected`],
    [term('tau'), round.tau === null ? '' : tell(round.tau, 4)],
    ['weight of the median', round.median > 1e-6 ? `${tell(100 * round.median)} %` : ''],
    ['skipped', warning(round.skipped)],
    ['unprotected', warning(round.unprotected)],
    ['note', round.note],
    ['effect', round.observed ? 'the rule looked on; the model came from plain averaging' : ''],
    ['not asked, but sent', round.unasked.map((name) => cut(name)).join(', ')],
    ...round.metrics.map(([name, value]) => [`metric ${cut(name)}`, cut(value, 200)]),
    ['time', round.time],
    ['run', round.run],
  ];
}

function warning(text) {
  return text ? make('span', { class: 'warn' }, text) : '';
}

function drawClients(round) {
  const head = ['client', 'verdict', 'weight, %', 'distance', 'reputation', 'size', 'why'];
  const rows = listCells(round).map(([client, cell]) => [
    cut(client.name),
    cell.state,
    cell.weight === null ? '–' : tell(100 * cell.weight),
    tell(cell.distance, 4),
    tell(cell.reputation),
    tell(cell.size, 9),
    cell.reason || '–',
  ]);
  const title = `clients in round ${round.number}`;
  return make('div', { class: 'card' }, plainTable(title, head, rows), copyButtons(() => ({ title, head, rows })));
}

function drawCurves(client) {
  const step = Math.ceil(journal.rounds.length / POINTS);
  const some = journal.rounds.filter((_, k) => (journal.rounds.length - 1 - k) % step === 0);
  const points = (valueOf) => some.map((round) => [placeOf(round), valueOf(round)]);
  const series = [
    { label: 'tau', slot: 0, points: points((round) => round.tau) },
    { label: 'median distance, not rejected', slot: 2, points: points((round) => middle(distances(round, false))) },
    client
      ? { label: cut(client.name, 24), slot: 1, points: points((round) => findCell(round, client)?.distance ?? null) }
      : { label: 'nearest rejected', slot: 1, points: points((round) => least(distances(round, true))) },
  ].filter((one) => one.points.some(([, value]) => value !== null));
  const values = series.flatMap((one) => one.points.map(([, value]) => value)).filter((value) => value > 0);
  const log = values.length > 0 && Math.max(...values) > FAR * Math.min(...values);
  const note = `Distances from the value of each round${log ? ', on a logarithmic axis' : ''}.`;
  const figures = [];
  if (series.length)
    figures.push(lineFigure('Distances and tau', note, series, { y: 'distance', log, least: log ? undefined : 0 }));
  if (client) {
    const own = [
      { label: 'reputation', slot: 2, points: points((round) => findCell(round, client)?.reputation ?? null) },
      { label: 'weight', slot: 0, points: points((round) => findCell(round, client)?.weight ?? null) },
    ];
    figures.push(
      lineFigure(`Weight and reputation of ${cut(client.name, 24)}`, '', own, { y: 'share', least: 0, most: 1 }),
    );
  }
  return figures;
}

function distances(round, rejected) {
  const { flags, distance } = round.packed;
  return distance.filter((value, k) => value !== null && Boolean(flags[k] & 1) === rejected).sort((a, b) => a - b);
}

function middle(values) {
  return values.length ? values[Math.floor((values.length - 1) / 2)] : null;
}

function least(values) {
  return values.length ? values[0] : null;
}
