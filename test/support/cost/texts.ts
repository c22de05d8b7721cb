// Texts that fill a field: the longest ones, and those that are expensive to match, split or parse.

export type Text = { name: string; make: () => string }

const worst: Record<string, (bytes: number) => string> = {
  'nested repeats': (bytes) => `^${'(a*)*'.repeat(Math.floor(bytes / 5))}$`.slice(0, bytes),
  'counted classes': (bytes) => '\\pL{1,99}'.repeat(Math.max(1, Math.floor(bytes / 9))),
  stars: (bytes) => '*a'.repeat(Math.floor(bytes / 2)),
  alternatives: (bytes) => `(${'a|'.repeat(Math.floor((bytes - 3) / 2))}b)`,
  brackets: (bytes) => '('.repeat(bytes),
  clauses: (bytes) => `name eq "a"${' and name eq "a"'.repeat(Math.floor((bytes - 11) / 16))}`,
  paths: (bytes) => 'a.b,'.repeat(Math.floor(bytes / 4)),
  capitals: (bytes) => 'A'.repeat(bytes),
  underscores: (bytes) => '_a'.repeat(Math.floor(bytes / 2)),
  dots: (bytes) => '.'.repeat(bytes),
  slashes: (bytes) => 'a/'.repeat(Math.floor(bytes / 2)),
  spaces: (bytes) => ' '.repeat(bytes),
  quotes: (bytes) => '\\"'.repeat(Math.floor(bytes / 2)),
  'letters of many bytes': (bytes) => 'é'.repeat(Math.floor(bytes / 2)),
}

/** Lengths that a field's own limit may allow. */
const sizes = [64, 256, 1000, 4000, 64_000]
/** Fields whose text is parsed or used as a pattern. */
const parsed = /pattern|allow|deny|match|filter|query|expression|order|mask|glob|regex|range|purl|constraint/

/** Other shapes for a field; `at` is its position among all fields. A parsed field gets all shapes. */
export function textsFor(field: string, budget: number, at: number): Text[] {
  const shaped = Object.entries(worst).flatMap(([shape, make]) =>
    [...sizes.filter((size) => size < budget), budget].map(
      (size): Text => ({ name: `${shape}, ${size}`, make: () => make(size) }),
    ),
  )
  const some = parsed.test(field) ? shaped : [shaped[at % shaped.length]!, shaped[(at * 7 + 3) % shaped.length]!]
  return [{ name: 'letters', make: () => 'a'.repeat(budget) }, ...some]
}
