// Summaries of groups and repositories: number of repositories and tags, last update, and the newest image.
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { countRepos, findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { tagsBelow } from '#domains/registry/tags/tags.service.ts'
import { invalid } from '#lib/errors.ts'
import { isAtOrBelow, isUid } from '#lib/uid.ts'
import { createShared, type ImageSummary, type Shared, summarize } from './image-summaries.service.ts'
import { mostScopes } from './summaries.model.ts'

export type ScopeSummary = {
  uid: string
  repos: number
  tags: number
  updateTime: string
  newestTag: string
  newestImage: ImageSummary | undefined
}

/** Groups and repositories in which the caller lacks the capabilities of the method are left out. */
export async function getScopeSummaries(call: Call, uids: readonly string[]): Promise<ScopeSummary[]> {
  if (uids.length === 0 || uids.length > mostScopes) {
    throw invalid({ field: 'uids', description: `must have 1 to ${mostScopes} uids` })
  }
  const wrong = uids.findIndex((uid) => !isUid(uid))
  if (wrong >= 0) throw invalid({ field: `uids[${wrong}]`, description: 'is not a uid' })
  const shared = createShared(call)
  const summaries: ScopeSummary[] = []
  for (const uid of new Set(uids)) {
    call.signal.throwIfAborted()
    if (call.reach.some((scope) => isAtOrBelow(uid, scope))) summaries.push(await summaryOf(call, shared, uid))
  }
  return summaries
}

const metadata = [capabilityNumber('manifest.metadata.list')]

async function summaryOf(call: Call, shared: Shared, uid: string): Promise<ScopeSummary> {
  const { db } = call.app
  const repo = await findRepoRow(db, { uid })
  const repos = repo ? 0 : await countRepos(db, uid)
  const { count, newest } = await tagsBelow(db, uid)
  const mayRead = call.caller.rights.holds(uid, metadata)
  const [newestImage] =
    repo && newest && newest.digest !== '' && mayRead ? await summarize(call, shared, repo, [newest.digest]) : []
  const updateTime = newest?.updateTime ?? ''
  return { uid, repos, tags: count, updateTime, newestTag: repo && newest ? newest.name : '', newestImage }
}
