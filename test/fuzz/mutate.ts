import { oneOf, type Random } from '../support/random.ts'

const hostile = [
  '\0',
  '%00',
  '%',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  '__proto__',
  '1e999',
  '-',
  '../',
  '//',
  ':',
  '\ud800',
  '%2F',
  '&',
  '=',
  ',',
  ' ',
  'é',
  '\u2028',
  '9'.repeat(40),
]

/** Text with up to four changes: pieces removed, doubled or swapped, or hostile characters inserted. */
export function mutate(random: Random, text: string): string {
  let changed = text
  for (let left = random.below(5); left > 0; left--) {
    const at = random.below(changed.length + 1)
    const length = random.below(8)
    const head = changed.slice(0, at)
    const piece = changed.slice(at, at + length)
    const tail = changed.slice(at + length)
    const choice = random.below(5)
    if (choice === 0) changed = head + tail
    else if (choice === 1) changed = head + piece.repeat(random.below(20)) + tail
    else if (choice === 2) changed = head + oneOf(random, hostile) + tail
    else if (choice === 3) changed = head + String.fromCharCode(random.below(256)) + piece + tail
    else changed = tail + piece + head
  }
  return changed
}
