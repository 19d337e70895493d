// What the tables show, and how their colours are to be read.

import { drawSelect, make } from './page.js';
import { chooseMeasure, known, shown } from './data.js';
import { css, shade, tell } from './scales.js';

const SPREADS = { '95 % interval': '95 % interval of the mean', deviation: 'deviation of the seeds' };
const RANGES = { full: '0 to 100 %', shown: 'least to greatest shown' };
export const scale = { range: 'full' };

export function drawKey(bounds, redraw) {
  const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
  for (let k = 0; k < 24; k += 1) {
    const piece = make('span');
    piece.style.background = css(shade(k / 23));
    bar.append(piece);
  }
  const unit = shown.measure.percent ? ' %' : '';
  const names = Object.fromEntries(known.measures.map(({ name }) => [name, tellName(name).toLowerCase()]));
  const take = (change) => (value) => {
    change(value);
    redraw();
  };
  const setSpread = (value) => {
    shown.spread = value;
  };
  const setRange = (value) => {
    scale.range = value;
  };
  return make(
    'div',
    { class: 'key' },
    known.measures.length > 1 ? drawSelect('measure', 'Measure', names, shown.measure.name, take(chooseMeasure)) : null,
    drawSelect('spread', 'Behind ±', SPREADS, shown.spread, take(setSpread)),
    drawSelect('range', 'Colours', RANGES, scale.range, take(setRange)),
    make(
      'span',
      { class: 'key' },
      make('span', {}, `${tell(bounds[0])}${unit}`),
      bar,
      make('span', {}, `${tell(bounds[1])}${unit}`),
    ),
    make(
      'span',
      { class: 'quiet' },
      'Choose a cell for its curves; choose several to compare them. Arrow keys move between cells.',
    ),
  );
}

export function tellName(measure) {
  const text = measure.replaceAll('_', ' ');
  return text[0].toUpperCase() + text.slice(1);
}
