// Cost of patterns that users configure: `bin/pinfold-node bench/patterns.ts [how many]`. Generates patterns from a seed, within
// the limits, together with the worst known patterns. Prints the slowest compilations and matches on this machine.

import { claimLimits, mostClaimWork, mostIssuerWork } from '../src/domains/iam/identities/relationships.ts'
import { estimateCost } from '../src/lib/patterns/pattern-cost.ts'
import { createPatterns, limitsFor, overLimit } from '../src/lib/patterns/patterns.ts'
import { generatePatterns, textsFor } from '../test/support/generated-patterns.ts'

const count = Number(process.argv[2] ?? 5000)
const lengths = { tag: 128, path: 255, claim: 1000 }
const repeats = 9

/** Minimum of several measurements, since other programs make single ones longer. */
function least(step: () => unknown): number {
  let ms = Number.POSITIVE_INFINITY
  for (let i = 0; i < repeats; i++) {
    const began = performance.now()
    step()
    ms = Math.min(ms, performance.now() - began)
  }
  return ms
}

// The first ones run before V8 has compiled re2js itself.
for (const pattern of generatePatterns(1, 500))
  if ((estimateCost(pattern)?.compile ?? 9999) < 1000) createPatterns().match(pattern, 'a')

type Row = { pattern: string; ms: number }
const slowest = (rows: Row[]): void => {
  for (const { pattern, ms } of rows.sort((a, b) => b.ms - a.ms).slice(0, 3)) {
    console.log(`  ${ms.toFixed(3)} ms  ${JSON.stringify(pattern).slice(0, 100)}`)
  }
}

for (const [what, length] of Object.entries(lengths)) {
  const limits = limitsFor(length, { bytes: 512, allSteps: 5000, allCompile: 10_000 })
  const accepted = [...generatePatterns(3, count)].filter((pattern) => !overLimit(pattern, limits))
  const texts = textsFor(length)
  console.log(`${what}: ${accepted.length} of ${count} patterns accepted, texts of ${length} characters`)
  console.log(' estimate')
  slowest([...generatePatterns(3, count)].map((pattern) => ({ pattern, ms: least(() => estimateCost(pattern)) })))
  console.log(' compile')
  slowest(
    accepted.map((pattern) => ({ pattern, ms: least(() => createPatterns().problems([['f', pattern]], limits)) })),
  )
  const patterns = createPatterns(Number.POSITIVE_INFINITY)
  console.log(' match')
  slowest(
    accepted.map((pattern) => ({
      pattern,
      ms: Math.max(...texts.map((text) => least(() => patterns.match(pattern, text)))),
    })),
  )
}

// The longest text that the limit of instructions allows for each pattern. No token holds more than 12,000 characters.
for (const [what, work] of Object.entries({ 'all claims': mostClaimWork, issuer: mostIssuerWork })) {
  const patterns = createPatterns(Number.POSITIVE_INFINITY)
  const accepted = [...generatePatterns(3, count)].filter((pattern) => !overLimit(pattern, claimLimits))
  console.log(`${what}: ${accepted.length} patterns on texts as long as ${work} instructions times characters allow`)
  slowest(
    accepted.flatMap((pattern) => {
      const size = patterns.sizeOf(pattern)
      if (size === undefined) return []
      const texts = textsFor(Math.min(12_000, 2 * Math.floor(work / size / 2) - 2))
      return { pattern, ms: Math.max(...texts.map((text) => least(() => patterns.match(pattern, text)))) }
    }),
  )
}
