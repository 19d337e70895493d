// Elements, words to the reader, and the theme. Text is always text: nothing from a store or a journal is ever read as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function find(id) {
  return document.getElementById(id);
}

export function say(text) {
  const status = find('status');
  status.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => {
    status.textContent = '';
  }, 4000);
}

export function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) {
    const key = keyOf(value);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(value);
  }
  return groups;
}

export function button(text, onclick, attributes) {
  return make('button', { type: 'button', onclick, ...attributes }, text);
}

// `options` gives each value's text; drawn again, it keeps the keyboard's place.
export function drawSelect(id, label, options, value, take) {
  const entries = Object.entries(options).map(([name, text]) => make('option', { value: name }, text));
  const select = make('select', { id }, ...entries);
  select.value = value;
  select.addEventListener('change', () => {
    take(select.value);
    find(id).focus();
  });
  return make('label', {}, `${label}: `, select);
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

// JSON that lies packed in the page until someone asks.
export async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

export function plainTable(label, head, rows) {
  return make(
    'div',
    { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 },
    make(
      'table',
      { class: 'plain' },
      make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
      make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((text) => make('td', {}, String(text)))))),
    ),
  );
}

// Light, dark, or as the system has it. Remembered where the browser lets a file remember anything.
const THEMES = ['auto', 'light', 'dark'];

function remembered() {
  try {
    return localStorage.getItem('robagg-theme') ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function startTheme(redraw) {
  const toggle = find('theme');
  const apply = (theme) => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    toggle.textContent = `Theme: ${theme}`;
    toggle.dataset.theme = theme;
  };
  apply(THEMES.includes(remembered()) ? remembered() : 'auto');
  toggle.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(toggle.dataset.theme) + 1) % THEMES.length];
    apply(next);
    try {
      localStorage.setItem('robagg-theme', next);
    } catch {
      // The choice then holds until the page is closed.
    }
    redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
