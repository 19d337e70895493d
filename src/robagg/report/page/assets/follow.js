// Puts the page of a journal together, and asks for new rounds where there is a server to ask.

import { count, find, inflate, make, say, startTheme } from './page.js';
import { ROUND_WORDS, writeGlossary } from './words.js';
import { watchWidth } from './figure.js';
import { tell } from './scales.js';
import { cut, journal, known, nameOf, take } from './rounds.js';
import { drawGrid, forget, startGrid } from './grid.js';
import { drawVerdict } from './verdict.js';

const [EVERY, AGAIN] = [1000, 3000]; // ms between two questions, and after one without an answer
const NAMED = 5;

let chosen = { client: null, round: null };
let answers = true;

function redraw() {
  drawGrid();
  drawVerdict(chosen);
}

function choose(picked) {
  chosen = picked;
  drawVerdict(chosen);
}

function tellNewest() {
  const round = journal.rounds.at(-1);
  if (known.live && !journal.id) return 'Asking for the rounds …';
  if (!round) return known.live ? 'No round has ended yet.' : 'The journal has no rounds.';
  if (round.skipped) return `Round ${round.number} was skipped: ${cut(round.skipped, 200)}`;
  const names = round.rejected.slice(0, NAMED).map((client) => nameOf(client, 24));
  const more = round.rejected.length > NAMED ? ' and others' : '';
  const who = names.length ? ` (${names.join(', ')}${more})` : '';
  const tau = round.tau === null ? '' : `; tau ${tell(round.tau)}`;
  return `Round ${round.number}: ${round.answered} of ${count(round.asked, 'client')} replied, ${round.rejected.length} rejected${who}${tau}; f in force ${tell(round.f)}${round.unprotected ? ', unprotected' : ''}.`;
}

function tellFacts() {
  const { rounds, clients } = journal;
  const skipped = rounds.filter((round) => round.skipped).length;
  const rules = [...new Set(rounds.map((round) => round.rule))].map((rule) => cut(rule, 60));
  const state = known.live ? (answers ? ', followed as it goes on' : ', no longer followed: robagg watch does not answer') : '';
  find('facts').textContent =
    `${count(rounds.length, 'round')}${skipped ? `, ${skipped} skipped` : ''}, ${count(clients.length, 'client')}${rules.length ? `, ${rules.join(', ')}` : ''}${state}`;
  find('footer').textContent =
    `Made by robagg ${known.version} from ${known.name}. ${known.live ? 'This page asks this machine alone.' : 'This page needs no network.'}`;
}

function drawNotes() {
  const notes = [...known.notes];
  if (journal.strange) notes.push(`${count(journal.strange, 'line')} of the journal that hold no round are left out`);
  find('troubles').replaceChildren(...notes.map((note) => make('p', { class: 'warn' }, `Note: ${note}.`)));
}

function showAll() {
  tellFacts();
  drawNotes();
  drawGrid();
  // What somebody is about to use must not vanish under the hand.
  if (!chosen.round && !find('chosen').contains(document.activeElement)) drawVerdict(chosen);
  const newest = tellNewest();
  if (find('summary').textContent !== newest) find('summary').textContent = newest;
}

async function ask() {
  const before = [journal.id, journal.rounds.length];
  do {
    const { id, rounds, names, texts } = journal;
    const query = new URLSearchParams({ id, first: rounds.length, names: names.length, texts: texts.length });
    const answer = await fetch(`rounds?${query}`);
    if (!answer.ok) throw new Error(answer.statusText);
    take(await answer.json());
  } while (journal.rounds.length < journal.total);
  if (before[0] === journal.id) return journal.rounds.length !== before[1];
  chosen = { client: null, round: null };
  forget();
  return true;
}

async function follow() {
  let news = false;
  const answered = answers;
  try {
    news = await ask();
    answers = true;
  } catch {
    answers = false;
    if (answered) say('robagg watch does not answer: the page shows the rounds up to then');
  }
  if (news) showAll();
  else if (answered !== answers) tellFacts();
  setTimeout(follow, answers ? EVERY : AGAIN);
}

async function open() {
  for (const packed of known.packed) known.rounds.push(...(await inflate(packed)));
  take(known);
  showAll();
}

writeGlossary(ROUND_WORDS);
startGrid(choose);
startTheme(redraw);
watchWidth();
showAll();
if (known.live) follow();
else open();
