// What a reader should take home, in a sentence.

import { findBest, tellApart } from './data.js';

const FEW = 3; // tables that are named one by one

export function summarise(tables) {
  const judged = tables
    .map((table) => ({ table, best: table.rows.length > 1 ? findBest(table) : [] }))
    .filter(({ best }) => best.length);
  if (!judged.length)
    return tables.length ? 'There is not enough here yet to say which rule has the best worst case.' : '';
  if (judged.length <= FEW) {
    const titles = tellApart(judged.map(({ table }) => table.title));
    return `${judged.map(({ best }, k) => tellBest(best, titles[k], k)).join('; ')}.`;
  }
  const wins = new Map();
  for (const { rule } of judged.flatMap(({ best }) => best)) wins.set(rule, (wins.get(rule) ?? 0) + 1);
  const [rule, won] = [...wins].sort((a, b) => b[1] - a[1])[0];
  const { row, title } = judged
    .map(({ table }) => ({ title: table.title, row: table.rows.find((one) => one.rule === rule) }))
    .filter((found) => found.row?.whole)
    .sort((a, b) => a.row.worst.mean - b.row.worst.mean)[0];
  return `${rule} has the best worst case in ${won} of ${judged.length} tables; its own hardest is ${row.worst.word || `${row.worst.mean.toFixed(1)} %`} under ${row.worst.attack} (${title}).`;
}

function tellBest(best, title, k) {
  const { mean, attack } = best[0].worst;
  const verb = k > 0 ? '' : best.length > 1 ? ' have the best worst case' : ' has the best worst case';
  const place = title ? `${k > 0 ? 'with' : 'With'} ${title}, ` : '';
  return `${place}${best.map((row) => row.rule).join(' and ')}${verb}: ${mean.toFixed(1)} % under ${attack}`;
}
