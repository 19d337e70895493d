// Puts the page together and answers the reader.

import { count, find, make, plainTable, say, startTheme } from './page.js';
import { RUN_WORDS, term, writeGlossary } from './words.js';
import { cells, known, rank, tabulate } from './data.js';
import { MOST_SERIES, tellSeconds } from './scales.js';
import { copyButtons } from './export.js';
import { watchWidth } from './figure.js';
import { makeFilters, matchingCells } from './filters.js';
import { drawTables } from './table.js';
import { drawBreakdown } from './breakdown.js';
import { drawDetails, tellResult } from './details.js';

let picked = [];

function redrawTables() {
  const matching = matchingCells();
  drawTables(matching, picked, redrawTables, choose);
  drawBreakdown(matching);
}

function show() {
  redrawTables();
  return drawDetails(picked, choose, clear);
}

function choose(cell) {
  const held = document.activeElement?.dataset?.cell;
  if (picked.includes(cell)) picked = picked.filter((other) => other !== cell);
  else if (picked.length < MOST_SERIES) picked = [...picked, cell];
  else say(`No more than ${MOST_SERIES} cells can be compared: take one away first`);
  show();
  // The cell is drawn again; the keyboard must not lose its place.
  if (held) [...document.querySelectorAll('[data-cell]')].find((other) => other.dataset.cell === held)?.focus();
}

function clear() {
  picked = [];
  show();
}

// The page opens on what matters most: the best rule where it does worst.
function pickFirst() {
  const tables = tabulate(matchingCells());
  const table = tables.find(({ rows }) => rows.length > 1) ?? tables[0];
  const row = table && (rank(table).leaders[0] ?? table.rows[0]);
  return row?.worst ? [row.worst] : [];
}

function tellFacts() {
  const seconds = known.runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0);
  const days = known.runs
    .map((run) => run.finished ?? '')
    .filter(Boolean)
    .sort();
  const day = (moment) => moment.slice(0, 10).replaceAll('-', '\u2011'); // a date is not broken over two lines
  const when = days.length
    ? `, finished ${day(days[0])}${day(days[0]) === day(days.at(-1)) ? '' : ` to ${day(days.at(-1))}`}`
    : '';
  find('facts').textContent =
    `${count(known.runs.length, 'run')} in ${count(cells.size, 'cell')}, ${tellSeconds(seconds)} of computing${when}`;
  find('footer').textContent = `Made by robagg ${known.version} from ${known.name}. This page needs no network.`;
}

function drawTroubles() {
  const wrong = known.runs.filter((run) => run.status !== 'ok' || run.diverged !== null);
  const area = find('troubles');
  area.append(make('h2', {}, 'Failures and ', term('diverged', 'divergences')));
  for (const note of known.notes) area.append(make('p', { class: 'warn' }, `Note: ${note}.`));
  if (!wrong.length) {
    area.append(make('p', {}, known.runs.length ? 'Every run came to its end.' : 'The store has no runs.'));
    return;
  }
  const head = ['what', 'rule', 'attack', 'task', 'split', 'n', 'f', 'seed', 'why'];
  const rows = wrong.map((run) => [
    tellResult(run),
    run.method,
    run.attack,
    run.task,
    run.split,
    run.n,
    run.f,
    run.seed,
    run.error || run.notes.join('; ') || '–',
  ]);
  area.append(
    make(
      'div',
      { class: 'card' },
      plainTable('Runs that failed or diverged', head, rows),
      copyButtons(() => ({ title: 'failures and divergences', head, rows })),
    ),
  );
}

function drawAbout() {
  const names = [...new Set(known.environments.flatMap((one) => Object.keys(one)))];
  const head = ['runs', 'computing', ...names];
  const rows = known.environments.map((one, index) => {
    const runs = known.runs.filter((run) => run.environment === index);
    return [
      runs.length,
      tellSeconds(runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0)),
      ...names.map((name) => one[name] ?? '–'),
    ];
  });
  const area = find('about');
  area.append(make('h2', {}, 'Where the runs were done'));
  if (rows.length)
    area.append(
      make(
        'div',
        { class: 'card' },
        plainTable('Versions and devices', head, rows),
        copyButtons(() => ({ title: 'versions and devices', head, rows })),
      ),
    );
}

tellFacts();
writeGlossary({ ...RUN_WORDS, ...Object.fromEntries(known.measures.map(({ name, words }) => [name, words])) }, known.words);
makeFilters(redrawTables);
picked = pickFirst();
startTheme(show);
watchWidth();
drawTroubles();
drawAbout();
show();
