// What a reader should take home, in a sentence: "best" only where the seeds' intervals allow it.

import { rank, shown, tellApart, tellCell } from './data.js';

const FEW = 3; // tables that are named one by one

export function summarise(tables) {
  const judged = tables
    .map((table) => ({ table, ...(table.rows.length > 1 ? rank(table) : { leaders: [] }) }))
    .filter(({ leaders }) => leaders.length);
  if (!judged.length)
    return tables.length ? 'There is not enough here yet to say which rule has the best worst case.' : '';
  if (judged.length <= FEW) {
    const titles = tellApart(judged.map(({ table }) => table.title));
    return `${judged.map((one, k) => tellOne(one, titles[k], k)).join('; ')}.`;
  }
  const leads = countRules(judged);
  const [rule, led] = [...leads].sort((a, b) => b[1] - a[1])[0];
  const won = judged.filter(({ leaders, near }) => leaders[0].rule === rule && !near.length).length;
  const { row, title } = judged
    .map(({ table }) => ({ title: table.title, row: table.rows.find((one) => one.rule === rule) }))
    .filter((found) => found.row?.whole)
    .sort((a, b) => (shown.measure.lower ? b.row.worst.mean - a.row.worst.mean : a.row.worst.mean - b.row.worst.mean))[0];
  const part = won === led ? 'all' : won || 'none';
  const noise = judged.some(({ sure }) => sure)
    ? `in ${part} of them beyond the noise of the seeds`
    : 'and with fewer than three seeds nobody can say whether that is noise';
  return (
    `${rule} has the ${extreme()} worst case in ${led} of ${judged.length} tables, ${noise}; ` +
    `its own hardest is ${tellCell(row.worst)}${unit(row.worst)} under ${row.worst.attack} (${title}).`
  );
}

function countRules(judged) {
  const counts = new Map();
  for (const { rule } of judged.flatMap(({ leaders }) => leaders)) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return counts;
}

function joinNames(names) {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function extreme() {
  return shown.measure.lower ? 'lowest' : 'highest';
}

function unit(cell) {
  return cell.word || !shown.measure.percent ? '' : ' %';
}

function tellOne({ leaders, near, sure }, title, k) {
  const [{ worst }] = leaders;
  const place = title ? `${k > 0 ? 'with' : 'With'} ${title}, ` : '';
  const names = joinNames(leaders.map((row) => row.rule));
  const have = leaders.length > 1 ? 'have' : 'has';
  const value = `${tellCell(worst)}${unit(worst)} under ${worst.attack}`;
  if (!near.length && sure) return `${place}${names} has the best worst case: ${value}`;
  const others = near.filter((row) => !leaders.includes(row)).map((row) => row.rule);
  const noise = !sure
    ? '; with fewer than three seeds nobody can say whether that is noise'
    : others.length
      ? `, within noise of ${joinNames(others)}`
      : '';
  return `${place}${names} ${have} the ${extreme()} worst case, ${value}${noise}`;
}
