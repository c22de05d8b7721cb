// Verifies stored findings: compares again without caches, and returns missing findings and findings without a reason.
import type { App } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import type { MatchedComponent } from '../lists/lists.model.ts'
import { countEntries, findListByNo, matchedListsAfter } from '../lists/lists.store.ts'
import { countMatches } from '../queue/queue.store.ts'
import { ecosystemsOf, findingsOf } from './compare.service.ts'
import { limitOwnFindings, type NewFinding, type OpenFinding } from './findings.model.ts'
import { affectedNow, componentsAfter, openFindings } from './findings.store.ts'
import { openOfComponent, openOfList } from './open-findings.store.ts'
import { suppressionDifferences } from './suppression.service.ts'

export type Verified = { checked: number; differences: string[]; next: string; waiting: number }

const componentsAtOnce = 20
const listsAtOnce = 20
const rowsAtOnce = 1000
const mostDifferences = 1000

/** End of a batch: `c:` and the number of a package, or `l:` and the number of a list. */
const position = /^([cl]):(\d{1,15})$/

/**
 * Verifies a batch: packages by number first, then lists. `after` is `next` of the previous batch. Throws INVALID_ARGUMENT for any
 * other text.
 */
export async function verifyStep({ db }: Pick<App, 'db'>, after: string): Promise<Verified> {
  const [, kind, number] = position.exec(after === '' ? 'c:0' : after) ?? []
  if (kind === undefined)
    throw invalid({ field: 'after', description: 'must be empty, or the `next` value of a response' })
  const waiting = await countMatches(db)
  if (kind === 'l') return { ...(await verifyLists(db, Number(number), waiting)), waiting }
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
  const wanted = new Map(limitOwnFindings(all, []).map((one) => [keyOf(one), one]))
  const open = await openFindings(db, [component.componentNo], { after: 0, upTo: Number.MAX_SAFE_INTEGER })
  const stored = new Set(open.map(keyOf))
  const name = `${component.ecosystem || component.kind} ${component.name} ${component.version}`
  // While a package is on hold, some of its findings are not stored.
  const missing = component.held ? [] : [...wanted].filter(([key]) => !stored.has(key))
  return [
    ...missing.map(([, { affectedNo }]) => `${name}: missing finding for affected entry ${affectedNo}`),
    ...(await suppressionDifferences(db, component.componentNo)).map((text) => `${name}: ${text}`),
    ...differenceOf(name, await openOfComponent(db, component.componentNo)),
    ...open.flatMap((one) =>
      wanted.has(keyOf(one)) ? [] : [`${name}: finding without a reason for affected entry ${one.affectedNo}`],
    ),
  ]
}

const keyOf = ({ affectedNo, state, severity }: NewFinding | OpenFinding): string =>
  `${affectedNo} ${state} ${severity}`

async function verifyLists(db: App['db'], after: number, waiting: number): Promise<Omit<Verified, 'waiting'>> {
  const lists = await matchedListsAfter(db, after, listsAtOnce)
  const differences: string[] = []
  for (const list of lists) {
    const [packages, expected] = [await countEntries(db, list), (await findListByNo(db, list))?.packages]
    if (packages !== expected) differences.push(`package list ${list}: has ${packages} packages instead of ${expected}`)
    const { stored, wanted } = await openOfList(db, list)
    if (stored >= 0) differences.push(...differenceOf(`package list ${list}`, { stored, wanted }))
    // The findings of lists from earlier versions are counted in the background.
    else if (waiting === 0) differences.push(`package list ${list}: findings are not counted`)
  }
  const last = lists.at(-1)
  return { checked: lists.length, differences, next: last === undefined ? '' : `l:${last}` }
}

function differenceOf(name: string, open: { stored: number; wanted: number | undefined } | undefined): string[] {
  if (!open || open.stored === open.wanted) return []
  return [`${name}: stored count of findings is ${open.stored} instead of ${open.wanted ?? 'unknown'}`]
}
