// Rules down, attacks across: colours, the worst case, sorting, and cells to choose.

import { button, count, find, make } from './page.js';
import { term } from './words.js';
import { compareTexts, hold, rank, shown, tabulate, tellCell } from './data.js';
import { css, inkOn, palette, shade, tell } from './scales.js';
import { drawKey, scale, tellName } from './key.js';
import { summarise } from './summary.js';
import { copyButtons } from './export.js';

const FIRST = 24; // tables drawn before the reader asks for more
const WORST = 'worst case';
const MEAN = 'mean over attacks';
const sorting = { column: WORST, down: true };
let most = FIRST;

export function drawTables(matching, picked, redraw, choose) {
  const tables = tabulate(matching);
  const means = matching.filter((cell) => !cell.word).map((cell) => cell.mean);
  const bounds =
    (scale.range === 'full' && shown.measure.percent) || !means.length
      ? [0, 100]
      : [means.reduce((a, b) => Math.min(a, b)), means.reduce((a, b) => Math.max(a, b))];
  const place = { bounds, picked, redraw, choose };
  const drawn = tables.slice(0, most).map((table) => drawTable(table, place));
  const more =
    tables.length > most
      ? button(`Show ${count(tables.length - most, 'more table')}`, () => {
          most += FIRST;
          redraw();
        })
      : null;
  const empty = tables.length ? null : make('p', {}, 'No run matches these filters.');
  find('results').replaceChildren(
    make(
      'h2',
      {},
      ...[term(shown.measure.name, tellName(shown.measure.name)), ' of each ', term('rule')],
      ...[' under each ', term('attack')],
    ),
    drawKey(bounds, redraw),
    ...[empty, ...drawn, more].filter(Boolean),
  );
  find('summary').textContent = summarise(tables);
}

function valueOf(row, column) {
  if (column === 'rule') return row.rule;
  if (column === WORST) return row.worst?.mean ?? -1;
  if (column === MEAN) return row.mean ?? -2;
  const cell = row.cells.get(column);
  return cell ? (cell.mean ?? -1) : -2;
}

function sortRows(table) {
  const sign = sorting.down ? -1 : 1;
  const by = (a, b) => {
    const [left, right] = [valueOf(a, sorting.column), valueOf(b, sorting.column)];
    return typeof left === 'string'
      ? sign * compareTexts(left, right)
      : sign * (left - right) || compareTexts(a.rule, b.rule);
  };
  return [...table.rows].sort(by);
}

function drawHead(column, title, redraw) {
  const active = sorting.column === column;
  const arrow = active ? (sorting.down ? ' ▼' : ' ▲') : '';
  const sort = () => {
    const again = sorting.column === column;
    sorting.down = again ? !sorting.down : column !== 'rule';
    sorting.column = column;
    redraw();
    // The button that was pressed is drawn again; the keyboard must not lose its place.
    [...document.querySelectorAll('[data-sort]')]
      .find((other) => other.dataset.sort === column && other.dataset.table === title)
      ?.focus();
  };
  return make(
    'th',
    { scope: 'col', 'aria-sort': active ? (sorting.down ? 'descending' : 'ascending') : null },
    button(`${column}${arrow}`, sort, {
      class: 'sort',
      'data-sort': column,
      'data-table': title,
      'aria-label': `Sort by ${column}`,
    }),
  );
}

function drawTable(table, place) {
  const badges = table.rows.length > 1 ? awardBadges(table) : new Map();
  const rows = sortRows(table);
  const columns = ['rule', ...table.attacks, WORST, MEAN];
  const body = rows.map((row) =>
    make(
      'tr',
      {},
      make('th', { scope: 'row' }, row.rule),
      ...table.attacks.map((attack) => drawCell(row.cells.get(attack), place)),
      make(
        'td',
        { class: badges.has(row) ? 'best' : '', title: tellBounds(row) },
        tellWorst(row),
        badges.has(row) ? make('span', { class: 'badge' }, badges.get(row)) : null,
      ),
      make('td', {}, row.mean === null ? '–' : row.mean.toFixed(1)),
    ),
  );
  const grid = make(
    'table',
    { class: 'results', 'aria-label': table.title },
    make('thead', {}, make('tr', {}, ...columns.map((column) => drawHead(column, table.title, place.redraw)))),
    make('tbody', {}, ...body),
  );
  grid.addEventListener('keydown', moveFocus);
  const notes = listNotes(table);
  return make(
    'div',
    { class: 'card' },
    make('h3', {}, table.title),
    make('div', { class: 'scroll', role: 'region', 'aria-label': `Table: ${table.title}`, tabindex: 0 }, grid),
    ...(notes.length ? [make('p', { class: 'quiet' }, notes.join(' '))] : []),
    copyButtons(
      () => textModel(table, rows),
      () => listModel(table, rows),
    ),
  );
}

// "best" only where the intervals over the seeds allow it.
function awardBadges(table) {
  const { leaders, near, sure } = rank(table);
  if (sure && !near.length) return new Map(leaders.map((row) => [row, 'best']));
  const first = shown.measure.lower ? 'lowest' : 'highest';
  const others = sure ? near.map((row) => [row, 'within noise']) : [];
  return new Map([...others, ...leaders.map((row) => [row, first])]);
}

function tellBounds(row) {
  if (row.low === null || !row.worst) return null;
  const { lower, percent } = shown.measure;
  const ends = (lower ? [-row.high, -row.low] : [row.low, row.high]).map((end) => hold(end, percent));
  return `By the 95 % intervals between ${ends.map((end) => tell(end)).join(' and ')}`;
}

function tellWorst(row, digits = 1) {
  const text = row.worst ? row.worst.word || row.worst.mean.toFixed(digits) : '–';
  return row.whole || !row.worst ? text : `${text}*`;
}

function drawCell(cell, { bounds, picked, choose }) {
  if (!cell) return make('td', { class: 'none' }, make('span', { class: 'quiet' }, '–'));
  const slot = picked.findIndex((other) => other.id === cell.id);
  const text = tellCell(cell);
  const spoken = `${cell.rule} under ${cell.attack}: ${text}${cell.word || !shown.measure.percent ? '' : ' percent'}, ${count(cell.runs.length, 'run')}`;
  const node = button(text, () => choose(cell), {
    class: `cell${cell.word ? ' lost' : ''}`,
    'aria-pressed': String(slot >= 0),
    'aria-label': spoken,
    'data-cell': cell.id,
  });
  if (!cell.word) {
    const colour = shade((cell.mean - bounds[0]) / (bounds[1] - bounds[0] || 1));
    node.style.background = css(colour);
    node.style.color = inkOn(colour);
  }
  if (slot < 0) return make('td', {}, node);
  const number = make('span', { class: 'slot', 'aria-hidden': 'true' }, String(slot + 1));
  number.style.background = palette().series[slot];
  return make('td', {}, node, number);
}

function moveFocus(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const here = event.target.closest('td, th');
  if (!step || !here) return;
  const row = here.parentElement;
  const rows = [...row.closest('table').rows];
  const next = rows[rows.indexOf(row) + step[0]]?.cells[here.cellIndex + step[1]]?.querySelector('button');
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function listNotes(table) {
  const there = table.rows.flatMap((row) => [...row.cells.values()]);
  return [
    there.some((cell) => cell.diverged && !cell.word) ? `† Some seeds diverged and count as ${shown.measure.lost}.` : '',
    there.some((cell) => cell.failed && !cell.word) ? '‡ Some seeds failed and are not in the mean.' : '',
    table.rows.some((row) => !row.whole && row.worst) ? '* Of the cells there are; some have no result.' : '',
  ].filter(Boolean);
}

function textModel(table, rows) {
  const lines = rows.map((row) => [
    row.rule,
    ...table.attacks.map((attack) => tellCell(row.cells.get(attack), 2)),
    tellWorst(row, 2),
    row.mean === null ? '–' : row.mean.toFixed(2),
  ]);
  return { title: table.title, head: ['rule', ...table.attacks, WORST, MEAN], rows: lines };
}

// For a spreadsheet: one line per cell, numbers as numbers.
function listModel(table, rows) {
  const lines = rows.flatMap((row) =>
    [...row.cells.values()].map((cell) => [
      table.title,
      cell.rule,
      cell.attack,
      shown.measure.name,
      cell.mean,
      cell.half,
      cell.deviation,
      cell.seeds,
      cell.diverged,
      cell.failed,
    ]),
  );
  return { head: ['table', 'rule', 'attack', 'measure', 'mean', 'half of interval', 'deviation', 'seeds', 'diverged', 'failed'], rows: lines };
}
