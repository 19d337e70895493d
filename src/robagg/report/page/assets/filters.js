// Which cells are shown: by facet, and by words.

import { button, find, make } from './page.js';
import { term } from './words.js';
import { FACETS, cells, facetValues, known } from './data.js';

const chosen = new Map();
let words = [];

export function matchingCells() {
  const wanted = [...chosen].filter(([, values]) => values.size);
  return [...cells.values()].filter(
    (cell) =>
      wanted.every(([name, values]) => values.has(cell.facets[name])) &&
      words.every((word) => cell.text.includes(word)),
  );
}

export function makeFilters(changed) {
  const area = find('filters');
  const row = make('div', { class: 'row' });
  const search = make('input', {
    type: 'search',
    id: 'search',
    placeholder: 'rule, attack, setting …',
    autocomplete: 'off',
  });
  search.addEventListener('input', () => {
    words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    changed();
  });
  row.append(make('label', { class: 'search' }, 'Find ', search));
  const menus = [];
  const shared = [];
  for (const facet of FACETS) {
    const values = facetValues(facet);
    if (isDouble(facet)) continue;
    if (values.length > 1) menus.push(makeMenu(facet.name, values, changed));
    else if (values.length && values[0] !== '–') shared.push(`${facet.name} ${values[0]}`);
  }
  const clear = button('Clear filters', () => {
    chosen.clear();
    words = [];
    search.value = '';
    for (const menu of menus) menu.reset();
    changed();
  });
  row.append(...menus.map((menu) => menu.node), clear);
  area.append(row);
  if (shared.length) area.append(make('p', { class: 'quiet' }, `The same in all runs: ${shared.join(' · ')}`));
  document.addEventListener('click', (event) => {
    for (const menu of menus) if (!menu.node.contains(event.target)) menu.node.open = false;
  });
}

// The split says nothing that rho does not say already, where all splits have a rho.
function isDouble(facet) {
  return facet.name === 'split' && known.runs.every((run) => run.rho !== null);
}

function makeMenu(name, values, changed) {
  const state = make('span', { class: 'quiet' }, 'all');
  const summary = make('summary', {}, `${name}: `, state);
  const node = make('details', { class: 'menu' }, summary);
  const boxes = values.map((value) => {
    const box = make('input', { type: 'checkbox', 'data-facet': name, value });
    box.addEventListener('change', () => {
      const picked = boxes.filter((other) => other.checked).map((other) => other.value);
      chosen.set(name, new Set(picked));
      tell(picked);
      changed();
    });
    return box;
  });
  const tell = (picked) => {
    state.textContent =
      picked.length === 0 ? 'all' : picked.length === 1 ? picked[0] : `${picked.length} of ${values.length}`;
  };
  const choices = boxes.map((box, k) => make('label', {}, box, ` ${values[k]}`));
  const known = ['rule', 'attack', 'f', 'rho', 'pre-aggregator'].includes(name);
  node.append(make('fieldset', {}, make('legend', {}, known ? term(name) : name), ...choices));
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    node.open = false;
    summary.focus();
  });
  const reset = () => {
    for (const box of boxes) box.checked = false;
    tell([]);
  };
  return { node, reset };
}
