import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { actorNames } from '#domains/iam/identities/actors.service.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { maxCallers } from '#domains/registry/usage/digest-usage.model.ts'
import { digestPattern, isDigest } from '#lib/digest.ts'
import { found, invalid } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import type { Puller, ReferrerRow } from './digests.model.ts'
import * as store from './digests.store.ts'

const listIdentities = [capabilityNumber('identity.list')]
/** How many days are looked at, of those on which there was anything. */
const days = 7
/** Whoever has shown no credential, and all that have no row of their own, have one more each. */
const perDay = maxCallers + 2
const mostPullers = 100

/** The manifests that are about a digest, with or without a tag. */
export async function listReferrers(
  call: Call,
  repoUid: string,
  subject: string,
  page: Page,
): Promise<Listed<ReferrerRow>> {
  const { db } = call.app
  const repo = await repoOf(call, repoUid, subject)
  const rows = await store.referrersOf(db, repo, subject, page)
  return toListed(
    call,
    page,
    rows.map((row) => ({ ...row, uid: row.digest })),
    await store.countReferrers(db, repo, subject),
  )
}

export type Pulls = { lastTime: string; pullers: (Puller & { callerName: string })[] }

/** When a manifest was last pulled, and by whom, for those who may know that; an empty time where nobody knows. */
export async function pullsOf(call: Call, repoUid: string, digest: string): Promise<Pulls> {
  const { db } = call.app
  const rows = await store.newestUsage(db, await repoOf(call, repoUid, digest), digest, days * perDay)
  const lastTime = rows.reduce((last, row) => (row.lastTime > last ? row.lastTime : last), '')
  if (!call.caller.rights.holds(repoUid, listIdentities)) return { lastTime, pullers: [] }
  const pullers = pullersOf(rows).slice(0, mostPullers)
  const names = await actorNames(
    db,
    pullers.map(({ caller }) => caller),
  )
  return { lastTime, pullers: pullers.map((one) => ({ ...one, callerName: names.get(one.caller) ?? '' })) }
}

/** The rows of the newest days by caller, whoever was last first. */
function pullersOf(rows: readonly store.UsageRow[]): Puller[] {
  const newest = new Set([...new Set(rows.map(({ day }) => day))].slice(0, days))
  const byCaller = Map.groupBy(
    rows.filter(({ day }) => newest.has(day)),
    ({ caller }) => caller,
  )
  const pullers = [...byCaller].map(([caller, some]): Puller => {
    const sum = (name: 'gets' | 'checks') => some.reduce((count, row) => count + row[name], 0)
    const [lastTime = ''] = some.map((row) => row.lastTime).sort((a, b) => (a < b ? 1 : -1))
    return { caller, lastTime, gets: sum('gets'), checks: sum('checks') }
  })
  return pullers.sort((a, b) =>
    a.lastTime === b.lastTime ? (a.caller < b.caller ? -1 : 1) : a.lastTime < b.lastTime ? 1 : -1,
  )
}

async function repoOf(call: Call, uid: string, digest: string): Promise<number> {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: `must match "${digestPattern.source}"` })
  const { id } = found(await findRepoRow(call.app.db, { uid }), repoType, uid)
  return id
}
