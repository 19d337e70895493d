// What the words mean: a glossary, and a small mark beside a word that opens its explanation.

import { button, find, make } from './page.js';

export const RUN_WORDS = {
  client:
    'One of the n participants. Each holds its own data and sends a vector (its gradient with momentum) every round.',
  Byzantine:
    'A client that may send anything, to do harm. There are f of them; the page knows which, the rule does not.',
  rule: 'How the server turns the n vectors it gets into the one it steps along. The mean believes everyone; robust rules do not.',
  'pre-aggregator':
    'A step before the rule that mixes the vectors, such as nnm, which replaces each by the mean of its nearest ones.',
  attack: 'What the Byzantine clients send. “none” is the control: they copy honest clients.',
  f: 'How many clients are Byzantine. The rule tolerates the same number.',
  rho: 'How unequal the honest clients’ data are: 0 deals labels evenly, 1 gives each client one label or a few.',
  'worst case':
    'The worst value of a rule over the attacks shown. An attacker chooses the attack, so this is what a rule can promise.',
  'within noise':
    'The seeds do not tell these worst cases apart. The true worst case of a rule may lie as low as the lowest end of its 95 % intervals, and is below the upper end of each.',
  weight: 'The share a client’s vector has in the step of a round. 0: the rule did not believe it.',
  tau: 'The radius within which a rule such as tq trusts a vector. It is computed from the spread of the vectors in each round.',
  'honest dropped': 'How many honest clients a round left out. Few is good: their data are lost.',
  'Byzantine kept': 'How many Byzantine clients a round believed. Few is good.',
  diverged: 'The model’s numbers ran off to infinity, and training stopped there.',
  seed: 'The number that fixes all that is random. Runs that differ only in their seed form one cell.',
};

export const ROUND_WORDS = {
  client: 'One of those who were asked. It sends its model, or what changed in it, every round.',
  weight:
    'The share that a client’s reply has in the value of a round. 0: it was not believed, or was not chosen.',
  believed: 'The reply has its weight in the value, and nothing speaks against it.',
  rejected:
    'The reply was broken, or lay outside the rule’s radius. A rejected client is not proved to be Byzantine: its data may be unusual.',
  clipped: 'The reply counts, but its pull was limited, because it lay far off.',
  'not chosen': 'The rule chose other replies, as Krum does. Nothing speaks against this one.',
  distance: 'From the reply to the value of the round, or to the rule’s centre.',
  tau: 'The radius within which a rule such as tq trusts a reply. It is computed from the spread of the replies in each round.',
  f: 'How many Byzantine clients the rule tolerated in the round: its f in force.',
  reputation: 'Falls with each rejection and recovers slowly: 1 is spotless. Old rounds count ever less.',
  skipped: 'The rule had no value, or none that protects, and the model stayed what it was.',
  'set aside':
    'Arrays such as BatchNorm’s statistics stay out of the distances, and their median is taken. * marks a client whose arrays there are odd.',
};

let glossary = {};
let opened = 0;

export function term(word, label = word) {
  const note = make('span', { popover: 'auto', id: `word-${++opened}`, class: 'note' }, glossary[word]);
  const mark = button(
    '?',
    () => {
      note.togglePopover();
      const place = mark.getBoundingClientRect();
      note.style.top = `${Math.min(place.bottom + 6, innerHeight - note.offsetHeight - 8)}px`;
      note.style.left = `${Math.max(8, Math.min(place.left - 20, innerWidth - note.offsetWidth - 8))}px`;
    },
    { class: 'mark', 'aria-label': `What does ${word} mean?`, 'aria-describedby': note.id },
  );
  return make('span', { class: 'term' }, label, mark, note);
}

export function writeGlossary(words, names = {}) {
  glossary = words;
  const list = make('dl', {});
  for (const [word, meaning] of Object.entries(glossary)) {
    list.append(make('dt', {}, word), make('dd', {}, meaning));
  }
  find('words').append(list);
  for (const [kind, known] of Object.entries(names)) {
    if (!Object.keys(known).length) continue;
    const entries = Object.entries(known).flatMap(([name, meaning]) => [make('dt', {}, name), make('dd', {}, meaning)]);
    find('words').append(make('h2', {}, `The ${kind}s here`), make('dl', {}, ...entries));
  }
}
