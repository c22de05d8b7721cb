// Regular expressions from a seed, for tests and benchmarks: random ones, and the most expensive known ones.

import { type Random, randomFrom } from './random.ts'

// biome-ignore format: one item per line hides the list.
const atoms = [
  'a', 'k', 'ſ', 'é', '😀', '.', '\\.', '\\d', '\\W', '\\s', '\\pL', '\\PN', '\\p{Greek}', '\\p{^Lu}', '\\x41',
  '\\x{212a}', '\\052', '[a-z0-9]', '[^:]', '[sS]', '[\\pL\\pN]', '[^\\pL]', '[[:alpha:]_-]', '[]a]',
  '[^\\x00-RT-rt-\\x{10ffff}]', '[Ā-ā]', '[!-~]', '^', '$', '\\b', '\\B', '\\A', '\\z', '\\Qa.b*\\E', '()',
  '(?i)', '(?s:.)', '(?i:k)', '(?P<n>x)', '{', '}', '-', 'repo:acme/',
]
// biome-ignore format: one item per line hides the list.
const repeats = [
  '', '', '', '', '*', '+', '?', '*?', '{0,3}', '{2}', '{1,10}', '{2,}', '{0}', '{0,40}', '{30}', '{0,200}',
  '{150}',
]

/** Shapes that were slow to parse, compile or match. */
// biome-ignore format: one item per line hides the list.
const worst = [
  '(\\pL{1,100}){1,10}', '(?:\\pL{1,10}){1,10}', '.{0,100}', '.{0,240}', '(?:.*){160}y',
  '(?:[\\pL\\pN]*[\\pN\\pL]*){80}y', '(?i)(?:s*){80}y', '(?:[sS]*){120}y', '(?:\\pL*|\\pN*){60}y',
  '(?:(|.*)(|.*)(|.*)(|.*)){20}y', '(((a{0,10}){0,10}){0,10})', '(?:.{1,30}){1,30}', '(?i)[B-\\x{1e942}]',
  '(?i)\\p{Assigned}', '^\\pL{0,200}$', '^(?:\\pLx|[^\\pL]y){100}$', '(?:\\b.?\\B?){100}y',
  // Maximum lengths of tags and of paths.
  '(?:.*){130}y', '(?:.*){66}y', '(?:[\\pL\\pN]*[\\pN\\pL]*){48}y', '(?:[\\pL\\pN]*[\\pN\\pL]*){25}y', '(?i)(?:s*){78}y',
  '(?i)(?:s*){40}y', '(?:[sS]*){78}y', '(?:\\pL*|\\pN*){42}y', '(?:\\b.?\\B?){70}y', '(?:(|.*)(|.*)(|.*)(|.*)){11}y',
  '(?:(?:a?){0,30}){0,8}b', '(.*.*.*.*.*.*.*.*.*.*)*y', '(?:.?){200}', '(|a){99}',
]

// biome-ignore format: one item per line hides the list.
const long = [
  '\\pL', '(?i)\\pL', 'a|', 'x*', '\\b', '(', '(?:', '[!-~]', '(?i)[!-~]', '\\p{Cn}', '[\\pL]', '[^\\pL\\pN]',
  'ab|', '(a)|', '.?', '[ab]|', '[^a]',
]

function randomPattern(random: Random, depth: number): string {
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)]!
  let pattern = ''
  for (let parts = 1 + random.below(5); parts > 0; parts--) {
    const nested = depth > 0 && random.below(100) < 35
    const opening = pick(['(', '(?:', '(?i:'])
    const atom = nested ? `${opening}${randomPattern(random, depth - 1)})` : pick(atoms)
    pattern += atom + pick(repeats)
    if (random.below(100) < 15) pattern += '|'
  }
  return pattern
}

/** The first patterns are always the same. Some patterns are invalid. */
export function* generatePatterns(seed: number, count: number): Generator<string> {
  const distinct = Array.from({ length: 250 }, (_, i) => String.fromCharCode(0x4e00 + i * 2))
  const fixed = [
    ...worst,
    ...long.flatMap((part) =>
      [3, 6, 40, 500].map((times) => part.repeat(Math.min(times, Math.floor(510 / part.length)))),
    ),
    ...[40, 100, 160].flatMap((n) => [distinct.slice(0, n).join('|'), `[${distinct.slice(0, n).join('')}]`]),
    ...[50, 100, 125].map((n) => `${'('.repeat(n)}a${')*'.repeat(n)}`),
    ...[50, 100, 125].map((n) => `${'(?:a|'.repeat(n / 2)}b${')?'.repeat(n / 2)}`),
  ]
  yield* fixed
  const random = randomFrom(seed)
  for (let i = fixed.length; i < count; i++) yield randomPattern(random, 3)
}

/** Texts that nearly match, so that matching takes longest. */
export function textsFor(length: number): string[] {
  const mixed = Array.from({ length }, (_, i) => String.fromCharCode(97 + ((i * 7) % 26))).join('')
  return ['a'.repeat(length), mixed, 'ſ'.repeat(length), 's'.repeat(length), `${'a-'.repeat(length / 2)}`]
}
