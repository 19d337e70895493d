// Colours that the colour-blind can tell apart, ticks at round numbers, and numbers as text.

import { isDark } from './page.js';

// Cividis, at equal steps: dark blue is little, yellow is much, and brightness alone tells them apart.
const CIVIDIS = [
  [0, 34, 78],
  [8, 51, 112],
  [53, 69, 108],
  [79, 87, 108],
  [102, 105, 112],
  [125, 124, 120],
  [148, 142, 119],
  [174, 163, 113],
  [200, 184, 102],
  [229, 207, 82],
  [254, 232, 56],
];

export function shade(share) {
  const at = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1);
  const low = Math.min(CIVIDIS.length - 2, Math.floor(at));
  return CIVIDIS[low].map((value, k) => Math.round(value + (at - low) * (CIVIDIS[low + 1][k] - value)));
}

export function css(colour) {
  return `rgb(${colour.join(',')})`;
}

function luminance(colour) {
  const parts = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

// Black or white, whichever is read more easily on the colour.
export function inkOn(colour) {
  const bright = luminance(colour);
  return (bright + 0.05) / 0.05 > 1.05 / (bright + 0.05) ? '#000000' : '#ffffff';
}

const LIGHT = {
  paper: '#ffffff',
  ink: '#1a1d21',
  quiet: '#5b6470',
  grid: '#dfe3e8',
  warn: '#b3261e',
  hatch: '#c9ced6',
  series: ['#0072b2', '#d55e00', '#007a5a', '#aa4499', '#1a1d21', '#8c6d00'],
};
const DARK = {
  paper: '#15181c',
  ink: '#eceff3',
  quiet: '#a6b0bc',
  grid: '#343b44',
  warn: '#ff9d8f',
  hatch: '#4a525d',
  series: ['#56b4e9', '#ff9e4a', '#35cfa0', '#e59bd0', '#ffffff', '#f0e442'],
};
export const DASHES = ['', '7 3', '2 3', '9 3 2 3', '12 4', '4 4'];
export const MARKERS = ['circle', 'square', 'triangle', 'diamond', 'cross', 'down'];
export const MOST_SERIES = LIGHT.series.length;

export function palette(forPaper = false) {
  return !forPaper && isDark() ? DARK : LIGHT;
}

export function tickValues(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
  return ticks;
}

export function logTicks(low, high) {
  const decades = Math.log10(high) - Math.log10(low);
  const every = Math.max(1, Math.ceil(decades / 6));
  const factors = decades < 2.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += every) {
    ticks.push(...factors.map((factor) => factor * 10 ** power));
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return inside.length > 1 ? inside : tickValues(low, high, 4);
}

export function tell(value, digits = 3) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1).replace('e+', 'e');
  return String(Number(value.toPrecision(digits)));
}

export function tellSeconds(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 120) return `${tell(seconds)} s`;
  return seconds < 7200 ? `${tell(seconds / 60)} min` : `${tell(seconds / 3600)} h`;
}
