// Tags of a group that were updated last, with the actor, and the vulnerabilities before and after the update.
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { actorNames } from '#domains/iam/identities/actors.service.ts'
import { toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { findRepoRow, type RepoRow } from '#domains/registry/repos/repos.store.ts'
import { listHistory } from '#domains/registry/tags/tag-history.store.ts'
import { newestTags } from '#domains/registry/tags/tags.service.ts'
import { invalid } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { type CountedImage, countVulnerabilities, createCounts } from './counted-vulnerabilities.service.ts'
import { mostUpdates, usualUpdates } from './summaries.model.ts'
import { storedImages } from './summaries.store.ts'

export type TagUpdate = {
  repoUid: string
  path: string
  tag: string
  digest: string
  previousDigest: string
  updateTime: string
  actor: string
  actorName: string
  /** Undefined for a caller without permission to list vulnerability reports, and for an image that is not stored. */
  counted: CountedImage | undefined
  before: CountedImage | undefined
}

const vulnerabilityReports = [capabilityNumber('vuln_reports.list')]

export async function getTagUpdates(call: Call, group: string, limit: number): Promise<TagUpdate[]> {
  if (limit < 0 || limit > mostUpdates)
    throw invalid({ field: 'limit', description: `must be from 1 to ${mostUpdates}` })
  const { db } = call.app
  const repos = new Map<string, RepoRow | undefined>()
  const updates: (TagUpdate & { repo: RepoRow })[] = []
  for (const { uid, name, digest, updateTime } of await newestTags(db, group, limit || usualUpdates)) {
    call.signal.throwIfAborted()
    const repoUid = parentOf(uid)
    if (!repos.has(repoUid)) repos.set(repoUid, await findRepoRow(db, { uid: repoUid }))
    const repo = repos.get(repoUid)
    if (!repo) continue
    const [last] = await listHistory(db, repo.ledger, name, {}, 1)
    updates.push({
      ...{ repo, repoUid, path: (await toRepoRef(db, repo)).path, tag: name, digest, updateTime },
      ...{ previousDigest: last?.previousDigest ?? '', actor: last?.actor ?? '', actorName: '' },
      ...{ counted: undefined, before: undefined },
    })
  }
  const names = await actorNames(
    db,
    updates.map(({ actor }) => actor),
  )
  for (const update of updates) update.actorName = names.get(update.actor) ?? ''
  await addCounts(call, updates)
  return updates.map(({ repo: _, ...update }) => update)
}

/** Counts the vulnerabilities of the new and the previous images, in the repositories where the caller has the permission. */
async function addCounts(call: Call, updates: readonly (TagUpdate & { repo: RepoRow })[]): Promise<void> {
  const knowledge = createCounts(call.app)
  for (const some of Map.groupBy(updates, ({ repoUid }) => repoUid).values()) {
    const { repo } = some[0]!
    if (!call.caller.rights.holds(repo.uid, vulnerabilityReports)) continue
    const digests = new Set(some.flatMap(({ digest, previousDigest }) => [digest, previousDigest]))
    digests.delete('')
    const stored = await storedImages(call.app.db, repo.id, [...digests])
    const present = stored.map(({ digest }) => digest)
    const counted = await countVulnerabilities(call, knowledge, repo, present)
    for (const update of some) {
      update.counted = counted.get(update.digest)
      update.before = counted.get(update.previousDigest)
    }
  }
}
