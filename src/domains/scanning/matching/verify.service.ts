// Compares anew, without what was remembered, and names what is stored and should not be, or should be and is not.
import type { App } from '#app.ts'
import { countsOf } from '../known/counts.service.ts'
import { findCounts } from '../known/known.store.ts'
import { countEntries } from '../lists/limits.store.ts'
import type { MatchedComponent } from '../lists/lists.model.ts'
import { findListByNo, matchedListsAfter } from '../lists/lists.store.ts'
import { countMatches } from '../queue/queue.store.ts'
import { keptOf, type NewFinding, type OpenFinding } from './findings.model.ts'
import { affectedNow, componentsAfter, openFindings } from './findings.store.ts'
import { ecosystemsOf, findingsOf } from './matching.service.ts'
import { suppressionDifferences } from './suppression.service.ts'

export type Verified = { checked: number; differences: string[]; next: string; waiting: number }

const componentsAtOnce = 20
const listsAtOnce = 20
const rowsAtOnce = 1000
const mostDifferences = 1000

/** One step: first packages by number, then the counts of lists. `after` is where the step before has ended. */
export async function verifyStep({ db, config }: Pick<App, 'db' | 'config'>, after: string): Promise<Verified> {
  const waiting = await countMatches(db)
  const [kind = 'c', number = '0'] = after.split(':')
  if (kind === 'l') return { ...(await verifyLists(db, Number(number), config.findingsPerList)), waiting }
  const components = await componentsAfter(db, Number(number), componentsAtOnce)
  const last = components.at(-1)
  if (!last) return { checked: 0, differences: [], next: 'l:0', waiting }
  const differences: string[] = []
  for (const one of components) differences.push(...(await differencesOf(db, one)))
  return {
    checked: components.length,
    differences: differences.slice(0, mostDifferences),
    next: `c:${last.componentNo}`,
    waiting,
  }
}

async function differencesOf(db: App['db'], component: MatchedComponent): Promise<string[]> {
  const named = { names: [component.name, component.origin], ecosystems: ecosystemsOf(component) }
  const all: NewFinding[] = []
  for (let after = 0; ; ) {
    const rows = await affectedNow(db, named, { after, most: rowsAtOnce })
    all.push(...(await findingsOf(db, [component], rows)))
    const last = rows.at(-1)
    if (!last || rows.length < rowsAtOnce) break
    after = last.affectedNo
  }
  const wanted = new Map(keptOf(all, []).map((one) => [keyOf(one), one]))
  const open = await openFindings(db, [component.componentNo], { after: 0, upTo: Number.MAX_SAFE_INTEGER })
  const stored = new Set(open.map(keyOf))
  const name = `${component.ecosystem || component.kind} ${component.name} ${component.version}`
  // Not all is kept of what is found in a package that is held.
  const missing = component.held ? [] : [...wanted].filter(([key]) => !stored.has(key))
  return [
    ...missing.map(([, { affectedNo }]) => `${name}: ${affectedNo} is not found`),
    ...(await suppressionDifferences(db, component.componentNo)).map((text) => `${name}: ${text}`),
    ...open.flatMap((one) => (wanted.has(keyOf(one)) ? [] : [`${name}: ${one.affectedNo} is found without a reason`])),
  ]
}

const keyOf = ({ affectedNo, state, severity }: NewFinding | OpenFinding): string =>
  `${affectedNo} ${state} ${severity}`

async function verifyLists(db: App['db'], after: number, most: number): Promise<Omit<Verified, 'waiting'>> {
  const lists = await matchedListsAfter(db, after, listsAtOnce)
  const differences: string[] = []
  for (const list of lists) {
    const [stored, wanted] = [await findCounts(db, list), (await countsOf(db, list, most)).counts]
    const [packages, expected] = [await countEntries(db, list), (await findListByNo(db, list))?.packages]
    if (packages !== expected) differences.push(`list ${list}: ${packages} packages rather than ${expected}`)
    const places = [...new Set([...stored.keys(), ...wanted.keys()])].sort()
    for (const place of places) {
      const [one, other] = [stored.get(place), wanted.get(place)].map((counts) => counts && entriesOf(counts))
      if (one !== other) differences.push(`list ${list}: counts ${one ?? 'none'} rather than ${other ?? 'none'}`)
    }
  }
  const last = lists.at(-1)
  return { checked: lists.length, differences, next: last === undefined ? '' : `l:${last}` }
}

const entriesOf = (counts: object): string => JSON.stringify(Object.entries(counts).sort())
