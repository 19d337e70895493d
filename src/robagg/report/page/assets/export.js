// Tables to the clipboard, figures to files.

import { button, make, say } from './page.js';

function toMarkdown({ title, head, rows }) {
  const escape = (text) => String(text).replace(/\\/g, '\\\\').replace(/\|/g, '\\|').replace(/</g, '&lt;');
  const line = (texts) => `| ${texts.map(escape).join(' | ')} |`;
  return [`**${escape(title)}**`, '', line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const LATEX = {
  '\\': '\\textbackslash{}',
  '&': '\\&',
  '%': '\\%',
  $: '\\$',
  '#': '\\#',
  _: '\\_',
  '{': '\\{',
  '}': '\\}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '>>': '$\\gg$',
  '<': '$<$',
  '>': '$>$',
  '±': '$\\pm$',
  '–': '--',
  '†': '$^\\dagger$',
  '‡': '$^\\ddagger$',
};

function toLatex({ title, head, rows }) {
  const escape = (text) => String(text).replace(/>>|[\\&%$#_{}~^<>±–†‡]/g, (sign) => LATEX[sign]);
  const line = (texts) => `${texts.map(escape).join(' & ')} \\\\`;
  return [
    `% ${title.replace(/\s+/g, ' ')}`,
    `\\begin{tabular}{l${'c'.repeat(head.length - 1)}}`,
    '\\toprule',
    line(head),
    '\\midrule',
    ...rows.map(line),
    '\\bottomrule',
    '\\end{tabular}',
  ].join('\n');
}

export function toCsv(head, rows) {
  const escape = (value) => {
    let text = value === null || value === undefined ? '' : String(value);
    // A spreadsheet takes such a text for a formula.
    if (typeof value === 'string' && /^[=+\-@]/.test(text) && Number.isNaN(Number(text))) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [head, ...rows].map((row) => row.map(escape).join(',')).join('\n');
}

// `model` gives {title, head, rows} as texts; `listed`, where it differs, the same as plain values for a spreadsheet.
export function copyButtons(model, listed = model) {
  const forms = {
    Markdown: () => toMarkdown(model()),
    LaTeX: () => toLatex(model()),
    CSV: () => toCsv(listed().head, listed().rows),
  };
  const buttons = Object.entries(forms).map(([name, write]) =>
    button(name, () => copy(write(), name), { class: 'small', 'aria-label': `Copy table as ${name}` }),
  );
  return make('div', { class: 'tools' }, make('span', { class: 'quiet' }, 'Copy as'), ...buttons);
}

export async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied as ${name}`);
  } catch {
    showText(text, name); // the browser does not let a file write to the clipboard
  }
}

function showText(text, name) {
  const area = make('textarea', { rows: 16, readonly: true, 'aria-label': `The table as ${name}` });
  area.value = text;
  const dialog = make('dialog', { 'aria-label': `The table as ${name}` }, make('p', {}, 'Copy the text below.'), area);
  dialog.append(button('Close', () => dialog.close()));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`Saved ${name}`);
}

function serialise(picture) {
  return new XMLSerializer().serializeToString(picture);
}

export function saveSvg(picture, name) {
  save(new Blob([serialise(picture)], { type: 'image/svg+xml' }), `${name}.svg`);
}

export async function savePng(picture, name, scale = 2) {
  const image = new Image();
  const drawn = new Promise((resolve, reject) => Object.assign(image, { onload: resolve, onerror: reject }));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(serialise(picture))}`;
  await drawn;
  const canvas = make('canvas', {
    width: Number(picture.getAttribute('width')) * scale,
    height: Number(picture.getAttribute('height')) * scale,
  });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  // Not toBlob: a browser puts that off until it has nothing else to do, for seconds on a busy machine.
  const bytes = atob(canvas.toDataURL('image/png').split(',')[1]);
  save(new Blob([Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))], { type: 'image/png' }), `${name}.png`);
}
