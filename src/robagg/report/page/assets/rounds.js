// The rounds of a journal and its clients, as they come in.

import { find } from './page.js';

export const known = JSON.parse(find('data').textContent);

// What has come so far; `clients` in the order in which they were first asked.
export const journal = { id: '', names: [], texts: [], rounds: [], clients: [], strange: 0, total: 0 };

// What does not print is written out: a name must not turn the text around it, or look like another.
function show(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

export function cut(text, most = 40) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// A name inside a sentence, whose order a name from right to left does not change.
export function nameOf(client, most) {
  const name = cut(client.name, most);
  return /^[ -~]*$/.test(name) ? name : `\u2068${name}\u2069`;
}

export function take(message) {
  if (message.id !== journal.id)
    Object.assign(journal, { id: message.id, names: [], texts: [], rounds: [], clients: [] });
  for (const name of message.names) {
    const client = { id: journal.names.length, name: show(name), asked: 0, replied: 0, rejected: 0, last: null };
    journal.names.push(client);
  }
  for (const text of message.texts) journal.texts.push(show(text));
  for (const packed of message.rounds) add(packed);
  journal.strange = message.strange;
  journal.total = message.total;
}

function add(packed) {
  const text = (place) => journal.texts[place];
  const round = {
    index: journal.rounds.length,
    number: packed.round ?? '?',
    f: packed.f,
    fAsked: text(packed.f_asked) || 'the most that n allows',
    tau: packed.tau,
    median: packed.median_weight,
    ...Object.fromEntries(
      ['rule', 'run', 'time', 'note', 'unprotected', 'skipped'].map((name) => [name, text(packed[name])]),
    ),
    observed: packed.observed,
    unasked: packed.unasked.map(text),
    metrics: packed.metrics.map(([name, value]) => [text(name), text(value)]),
    asked: packed.client.length,
    answered: 0,
    rejected: [],
    packed,
  };
  packed.client.forEach((id, place) => {
    const client = journal.names[id];
    const flags = packed.flags[place];
    if (client.last === null) journal.clients.push(client);
    client.asked += 1;
    client.last = round.index;
    if (flags & 2) {
      client.replied += 1;
      round.answered += 1;
    }
    if (flags & 1) {
      client.rejected += 1;
      round.rejected.push(client);
    }
  });
  journal.rounds.push(round);
}

// What a round says of a client; null where it was not asked.
export function findCell(round, client) {
  const { packed } = round;
  const place = packed.client.indexOf(client.id);
  if (place < 0) return null;
  const flags = packed.flags[place];
  const cell = {
    rejected: Boolean(flags & 1),
    replied: Boolean(flags & 2),
    quarantined: Boolean(flags & 4),
    reason: journal.texts[packed.reason[place]],
    aside: journal.texts[packed.aside[place]],
  };
  for (const name of ['weight', 'distance', 'size', 'reputation']) cell[name] = packed[name][place];
  return { ...cell, state: nameState(cell, round) };
}

function nameState(cell, round) {
  if (!cell.replied) return 'no reply';
  if (cell.rejected) return 'rejected';
  if (round.skipped) return 'skipped';
  if (!cell.reason) return 'believed';
  return cell.weight > 0 ? 'clipped' : 'not chosen';
}

export function listCells(round) {
  return round.packed.client.map((id) => [journal.names[id], findCell(round, journal.names[id])]);
}

// Where a round stands on an axis: a journal may hold a second run, whose rounds begin at 1 again.
export function placeOf(round) {
  const { rounds } = journal;
  const grows = rounds.at(-1).number - rounds[0].number === rounds.length - 1;
  return grows ? round.number : round.index + 1;
}
