// Matching of a search text with names: folding, the parts of a name that an index stores, and the rank of a match.

/** Ranks of a match, the best first: equal name, same start, start of a word in the name, or anywhere in the name. */
export const ranks = ['exact', 'prefix', 'word', 'part'] as const
export type Rank = (typeof ranks)[number]

/** Position of a part in its name: the start of the name, the start of a later word, or inside of a word. */
export const standings = { start: 0, word: 1, inside: 2 } as const

/** A name from one of its characters on, as an index stores it. */
export type NamePart = { standing: number; part: string }

/** Maximum number of characters of a stored part. The match of a longer search text is checked with the whole name. */
export const maxPart = 48
/** Number of characters at which parts of a name begin. A text that occurs only after them is not found. */
const maxStarts = 128

/** Text for comparisons, in lower case and with composed characters. So `é` is the same as `e` with an accent. */
export function foldText(text: string): string {
  return text.toWellFormed().normalize('NFC').toLowerCase().normalize('NFC')
}

/** Parts of a name for an index, without duplicates. */
export function partsOf(name: string): NamePart[] {
  const characters = [...foldText(name)]
  const found = new Map<string, NamePart>()
  for (let at = 0; at < Math.min(characters.length, maxStarts); at++) {
    const standing = standingAt(characters, at)
    const part = characters.slice(at, at + maxPart).join('')
    found.set(`${standing} ${part}`, { standing, part })
  }
  return [...found.values()]
}

/** Start of a folded text, as the index has it. */
export const startOf = (folded: string): string => [...folded].slice(0, maxPart).join('')

function standingAt(characters: readonly string[], at: number): number {
  if (at === 0) return standings.start
  return isOfWord(characters[at]!) && !isOfWord(characters[at - 1]!) ? standings.word : standings.inside
}

const isOfWord = (character: string): boolean => /[\p{L}\p{N}]/u.test(character)

/** Rank of the best match of a folded text in one of the names. Undefined if no name contains the text. */
export function rankOf(names: readonly string[], folded: string): Rank | undefined {
  let best: number = ranks.length
  for (const name of names) best = Math.min(best, rankIn(foldText(name), folded))
  return ranks[best]
}

function rankIn(name: string, folded: string): number {
  if (name === folded) return 0
  if (name.startsWith(folded)) return 1
  let best: number = ranks.length
  for (let at = name.indexOf(folded, 1); at >= 0 && best > 2; at = name.indexOf(folded, at + 1)) {
    const before = [...name.slice(0, at)].at(-1)!
    best = isOfWord([...folded][0]!) && !isOfWord(before) ? 2 : 3
  }
  return best
}
