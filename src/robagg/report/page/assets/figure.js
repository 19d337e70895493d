// A figure: a picture that is drawn again when its place or the theme changes, with its explanation and its exports.

import { button, draw, make } from './page.js';
import { palette } from './scales.js';
import { copy, savePng, saveSvg, toCsv } from './export.js';

const EXPORT_WIDTH = 720;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const figures = new Set();
const pencil = make('canvas').getContext('2d');
const tip = make('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });
document.body.append(tip);

export function measure(text, size = 12) {
  pencil.font = `${size}px ${FONT}`;
  return pencil.measureText(text).width;
}

// The longest beginning of a text that fits, with dots for the rest.
export function shorten(text, width, size = 12) {
  if (measure(text, size) <= width) return text;
  let end = text.length;
  while (end > 1 && measure(`${text.slice(0, end)}…`, size) > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

export function sheet(width, height, colours, label) {
  const picture = draw('svg', {
    xmlns: 'http://www.w3.org/2000/svg',
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': label,
    'font-family': FONT,
    'font-size': 12,
  });
  picture.append(draw('rect', { width, height, fill: colours.paper }));
  return picture;
}

export function write(text, x, y, colours, attributes) {
  return draw('text', { x, y, fill: colours.ink, ...attributes }, text);
}

function fileName(text) {
  return (
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '')
      .slice(0, 60) || 'figure'
  );
}

// `paint(width, colours)` gives the picture; `data()` gives {head, rows}; `hover(x, y, width)` the lines of a tip.
export function makeFigure({ title, note, paint, data, hover }) {
  const name = fileName(title);
  const place = make('div', { class: 'picture' });
  const forPaper = () => paint(EXPORT_WIDTH, palette(true));
  const tools = make(
    'div',
    { class: 'tools' },
    button('PNG', () => savePng(forPaper(), name), { class: 'small', 'aria-label': `Save as PNG: ${title}` }),
    button('SVG', () => saveSvg(forPaper(), name), { class: 'small', 'aria-label': `Save as SVG: ${title}` }),
    button('Data', () => copy(toCsv(data().head, data().rows), 'CSV'), {
      class: 'small',
      'aria-label': `Copy data as CSV: ${title}`,
    }),
  );
  const caption = make(
    'figcaption',
    {},
    make('h4', {}, title),
    ...(note ? [make('p', { class: 'quiet' }, note)] : []),
    tools,
  );
  const figure = make('figure', {}, caption, place);
  const entry = {
    place,
    width: 0,
    redraw: () => {
      entry.width = Math.max(280, Math.floor(place.clientWidth));
      place.replaceChildren(paint(entry.width, palette()));
    },
  };
  figures.add(entry);
  if (hover) followPointer(place, entry, hover);
  return figure;
}

function followPointer(place, entry, hover) {
  place.addEventListener('pointermove', (event) => {
    const box = place.getBoundingClientRect();
    const lines = hover(event.clientX - box.left, event.clientY - box.top, entry.width);
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => make('div', {}, line)));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  });
  place.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
}

export function drawFigures(fresh = false) {
  for (const entry of figures) {
    if (!entry.place.isConnected) figures.delete(entry);
    else if (!fresh || !entry.width) entry.redraw();
  }
}

export function watchWidth() {
  let last = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== last) requestAnimationFrame(drawFigures);
    last = innerWidth;
  });
}
