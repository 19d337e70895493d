// Clients down, rounds across: a window onto a run that may have thousands of rounds.

import { button, count, find, make } from './page.js';
import { term } from './words.js';
import { css, inkOn, shade, tell } from './scales.js';
import { cut, findCell, journal, nameOf } from './rounds.js';

const MARKS = { rejected: '✕', 'no reply': '–', skipped: '⊘', 'not chosen': '○', clipped: '▾' };
const MEASURES = {
  weight: { title: 'weight, in %', width: 42, write: (cell) => tell(100 * cell.weight, 2) },
  distance: { title: 'distance', width: 68, write: (cell) => tell(cell.distance, 3) },
  reputation: { title: 'reputation', width: 58, write: (cell) => tell(cell.reputation, 2) },
};
const byName = new Intl.Collator('en', { numeric: true }).compare;
const ORDERS = {
  'most rejected': (client) => -client.rejected,
  'least reputation': (client) => findCell(journal.rounds[client.last], client).reputation ?? 1,
  name: () => 0,
  'as first asked': (client) => journal.clients.indexOf(client),
};
const MANY = 200; // clients drawn before the reader asks for more
const [LEAST_COLUMNS, MOST_COLUMNS] = [4, 60];
const FIRST = 2; // columns before the rounds
const FRAME = 40; // pixels of the card around the table

const view = { measure: 'weight', order: 'most rejected', words: '', end: null, most: MANY };
const focus = { row: 'round', column: 'name' };
const parts = {};
let chosen = { client: null, round: null };
let choose = () => {};

export function startGrid(onchoose) {
  choose = onchoose;
  parts.table = make('table', { class: 'rounds', role: 'grid', 'aria-label': 'Clients by rounds' });
  parts.table.addEventListener('keydown', press);
  parts.table.addEventListener('click', (event) => pick(event.target.closest('[data-row]')));
  parts.place = make('span', {});
  parts.more = make('p', {});
  parts.spoken = make('p', { role: 'status', class: 'spoken' });
  find('results').replaceChildren(
    make('h2', {}, 'Each ', term('client'), ' in each round'),
    drawControls(),
    drawKey(),
    make('div', { class: 'card' }, drawSteps(), make('div', { class: 'scroll' }, parts.table), parts.more, parts.spoken),
  );
  addEventListener('resize', drawGrid);
}

function selector(id, label, names, current, changed) {
  const select = make('select', { id }, ...names.map(([value, text]) => make('option', { value }, text)));
  select.value = current;
  select.addEventListener('change', () => changed(select.value));
  return make('label', {}, `${label} `, select);
}

function drawControls() {
  const search = make('input', { type: 'search', id: 'search', placeholder: 'client …', autocomplete: 'off' });
  search.addEventListener('input', () => change({ words: search.value.toLowerCase() }));
  const measures = Object.entries(MEASURES).map(([name, { title }]) => [name, title]);
  const orders = Object.keys(ORDERS).map((name) => [name, name]);
  return make(
    'div',
    { class: 'row' },
    selector('measure', 'Cells show', measures, view.measure, (measure) => change({ measure })),
    selector('order', 'Order', orders, view.order, (order) => change({ order })),
    make('label', { class: 'search' }, 'Find ', search),
  );
}

function drawSteps() {
  const goTo = make('input', { type: 'number', id: 'go', min: 1 });
  goTo.addEventListener('change', () => {
    const index = journal.rounds.findLastIndex((round) => String(round.number) === goTo.value);
    if (index >= 0) moveTo(index + Math.ceil(columns() / 2));
  });
  return make(
    'div',
    { class: 'row steps' },
    button('‹ Earlier', () => moveTo(span().end - columns())),
    parts.place,
    button('Later ›', () => moveTo(span().end + columns())),
    button('Newest', () => moveTo(Infinity)),
    make('label', {}, 'Go to round ', goTo),
  );
}

function drawKey() {
  const mark = (sign, ...what) => make('span', {}, make('b', { 'aria-hidden': 'true' }, sign), ' ', ...what);
  return make(
    'div',
    { class: 'key' },
    mark('12', term('believed')),
    mark(MARKS.rejected, term('rejected')),
    mark(MARKS.clipped, term('clipped')),
    mark(MARKS['not chosen'], term('not chosen')),
    mark(MARKS['no reply'], 'no reply'),
    mark(MARKS.skipped, 'round ', term('skipped')),
    mark('*', 'odd arrays ', term('set aside')),
    make('span', { class: 'quiet' }, 'Empty: not asked. Arrow keys move between cells, Enter chooses one.'),
  );
}

function change(what) {
  Object.assign(view, what);
  drawGrid();
}

// The window's end; null follows the newest round.
function moveTo(end) {
  const most = journal.rounds.length;
  change({ end: end >= most ? null : Math.max(Math.min(columns(), most), end) });
}

function columns() {
  const before = [...(parts.table.rows[0]?.cells ?? [])].slice(0, FIRST);
  const taken = before.reduce((sum, cell) => sum + cell.offsetWidth, 0) || 220;
  const room = find('results').clientWidth - FRAME - taken;
  return Math.max(LEAST_COLUMNS, Math.min(MOST_COLUMNS, Math.floor(room / MEASURES[view.measure].width)));
}

function span() {
  const end = Math.min(view.end ?? Infinity, journal.rounds.length);
  return { begin: Math.max(0, end - columns()), end };
}

export function drawGrid() {
  const held = parts.table.contains(document.activeElement);
  const { begin, end } = span();
  const shown = journal.rounds.slice(begin, end);
  const found = journal.clients.filter((client) => client.name.toLowerCase().includes(view.words));
  const ranks = new Map(found.map((client) => [client, ORDERS[view.order](client)]));
  const listed = found.sort((a, b) => ranks.get(a) - ranks.get(b) || byName(a.name, b.name)).slice(0, view.most);
  const cells = listed.map((client) => shown.map((round) => findCell(round, client)));
  const shadeOf = makeShade(cells.flat());
  parts.table.setAttribute('aria-rowcount', found.length + 3);
  parts.table.setAttribute('aria-colcount', journal.rounds.length + FIRST);
  parts.table.replaceChildren(
    drawHead(shown),
    make('tbody', {}, ...listed.map((client, k) => drawRow(client, shown, cells[k], shadeOf))),
  );
  parts.place.textContent = shown.length
    ? `Rounds ${shown[0].number} to ${shown.at(-1).number}, of ${journal.rounds.length}${view.end === null ? ', the newest' : ''}`
    : 'No rounds';
  parts.more.replaceChildren(
    ...(found.length > listed.length
      ? [button(`Show ${count(found.length - listed.length, 'more client')}`, () => change({ most: Infinity }))]
      : found.length || !shown.length
        ? []
        : ['No client matches.']),
  );
  settle(held);
}

// Of its share of the scale: a weight of the greatest one shown, a distance of tau where there is one.
function makeShade(cells) {
  const values = cells.filter((cell) => cell?.state === 'believed').map((cell) => cell[view.measure] ?? 0);
  const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
  if (view.measure === 'reputation') return (value) => value;
  return (value, round) => value / (view.measure === 'distance' && round.tau ? round.tau : most);
}

function drawHead(shown) {
  const line = (row, title, write, spoken) =>
    make(
      'tr',
      {},
      place(make('th', { scope: row === 'round' ? 'col' : 'row', colspan: 1 }, title), row, 'name'),
      place(make(row === 'round' ? 'th' : 'td', { class: 'count' }, row === 'round' ? 'rejected' : ''), row, 'count'),
      ...shown.map((round) =>
        place(
          make(
            row === 'round' ? 'th' : 'td',
            {
              scope: row === 'round' ? 'col' : null,
              'aria-label': spoken(round),
              'aria-selected': String(row === 'round' && chosen.round === round && !chosen.client),
            },
            write(round),
          ),
          row,
          round.index,
        ),
      ),
    );
  const marks = (round) => (round.skipped ? ' ⊘' : '') + (round.unprotected ? ' !' : '');
  return make(
    'thead',
    {},
    line('round', 'round', (round) => `${round.number}${marks(round)}`, nameRound),
    line('tau', 'tau', (round) => tell(round.tau, 2), (round) => `tau in round ${round.number}: ${tell(round.tau, 2)}`),
    line('f', 'f in force', (round) => tell(round.f), (round) => `f in force in round ${round.number}: ${tell(round.f)}`),
  );
}

function nameRound(round) {
  return `round ${round.number}${round.skipped ? ', skipped' : ''}${round.unprotected ? ', unprotected' : ''}`;
}

function drawRow(client, shown, cells, shadeOf) {
  const title = make('th', { scope: 'row' }, make('bdi', {}, cut(client.name)));
  const counted = make('td', { class: 'count' }, `${client.rejected} of ${client.replied}`);
  counted.setAttribute('aria-label', `${nameOf(client)}: ${counted.textContent} replies rejected`);
  return make(
    'tr',
    {},
    place(title, client.id, 'name'),
    place(counted, client.id, 'count'),
    ...cells.map((cell, k) => place(drawCell(client, shown[k], cell, shadeOf), client.id, shown[k].index)),
  );
}

function drawCell(client, round, cell, shadeOf) {
  const node = make('td', {
    class: cell ? cell.state.replace(' ', '-') : 'absent',
    'aria-label': tellCell(client, round, cell),
    'aria-selected': String(chosen.client === client && chosen.round === round),
  });
  if (!cell) return node;
  const mark = MARKS[cell.state] ?? '';
  const none = cell[view.measure] === null || (view.measure !== 'reputation' && !cell.replied);
  const value = none || (mark && view.measure === 'weight' && !cell.weight) ? '' : MEASURES[view.measure].write(cell);
  node.textContent = `${mark}${mark && value ? ' ' : ''}${value}${cell.aside ? '*' : ''}`;
  if (cell.state === 'believed') {
    const colour = shade(shadeOf(cell[view.measure] ?? 0, round));
    node.style.background = css(colour);
    node.style.color = inkOn(colour);
  }
  return node;
}

function tellCell(client, round, cell) {
  const where = `${nameOf(client)}, ${nameRound(round)}`;
  if (!cell) return `${where}: not asked`;
  const { weight, distance, reputation } = MEASURES;
  const numbers = cell.replied ? `, weight ${weight.write(cell)} %, distance ${distance.write(cell)}` : '';
  const notes = `${cell.aside ? ', odd arrays set aside' : ''}${cell.quarantined ? ', left out of the next round' : ''}`;
  const why = cell.reason && cell.reason !== cell.state && cell.state !== 'skipped' ? `: ${cut(cell.reason, 120)}` : '';
  return `${where}: ${cell.state}${numbers}, reputation ${reputation.write(cell)}${notes}${why}`;
}

function place(node, row, column) {
  node.dataset.row = row;
  node.dataset.column = column;
  node.tabIndex = -1;
  node.setAttribute('aria-colindex', column === 'name' ? 1 : column === 'count' ? FIRST : column + FIRST + 1);
  return node;
}

// One cell can be reached by Tab, the one that had the focus last; all others by arrow keys.
function settle(held) {
  const all = [...parts.table.querySelectorAll('[data-row]')];
  const row = all.filter((node) => node.dataset.row === String(focus.row));
  const line = row.length ? row : all.slice(0, parts.table.rows[0].cells.length);
  const exact = line.find((node) => node.dataset.column === String(focus.column));
  const node = exact ?? line[Math.min(FIRST, line.length - 1)];
  if (!node) return;
  aim(node);
  if (held) node.focus({ preventScroll: true });
}

function aim(node) {
  for (const other of parts.table.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  node.tabIndex = 0;
  Object.assign(focus, { row: node.dataset.row, column: node.dataset.column });
}

function press(event) {
  const here = event.target.closest('[data-row]');
  if (!here || event.altKey || event.metaKey) return;
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    pick(here);
    return;
  }
  const next = step(event, here);
  if (!next) return;
  event.preventDefault();
  aim(next);
  next.focus();
}

function step({ key, ctrlKey }, here) {
  const { rows } = parts.table;
  const row = here.parentElement;
  const at = [...rows].indexOf(row);
  const { begin, end } = span();
  const column = here.cellIndex;
  if (key === 'ArrowUp' || key === 'ArrowDown') return rows[at + (key === 'ArrowUp' ? -1 : 1)]?.cells[column];
  if (key === 'Home') return (ctrlKey ? rows[0] : row).cells[0];
  if (key === 'End') return (ctrlKey ? rows[rows.length - 1] : row).cells[row.cells.length - 1];
  const leftmost = column === FIRST && begin > 0;
  const rightmost = column === row.cells.length - 1 && end < journal.rounds.length;
  if ((key === 'ArrowLeft' && leftmost) || (key === 'ArrowRight' && rightmost)) {
    moveTo(end + (leftmost ? -1 : 1));
    return rows[at].cells[column];
  }
  if (key === 'PageUp' || key === 'PageDown') {
    moveTo(end + (key === 'PageUp' ? -columns() : columns()));
    return parts.table.rows[at].cells[Math.min(column, parts.table.rows[at].cells.length - 1)];
  }
  const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
  return by ? row.cells[column + by] : undefined;
}

function pick(node) {
  if (!node) return;
  const { row, column } = node.dataset;
  aim(node);
  const client = journal.names[Number(row)] ?? null;
  chosen = { client, round: journal.rounds[Number(column)] ?? null };
  drawGrid();
  settle(true);
  parts.spoken.textContent = tellChosen();
  choose(chosen);
}

function tellChosen() {
  const { client } = chosen;
  const round = chosen.round ?? journal.rounds.at(-1);
  return `${client ? tellCell(client, round, findCell(round, client)) : nameRound(round)}. More of it below.`;
}

// Nothing is chosen any more, because the journal is another.
export function forget() {
  chosen = { client: null, round: null };
  view.end = null;
  parts.spoken.textContent = '';
}
