// Source of a copied repository, the identity in whose name it is copied, and the status of the copy.
import type { App, Call, Work } from '#app.ts'
import type { By } from '#caller.ts'
import type { Tx } from '#db/sql.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { createRights } from '#domains/iam/access/rights.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { isBound } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import { findByPath } from '#domains/registry/repos/paths.service.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import type { ResolvedSync, SourceChange, SyncConfig } from '#domains/registry/repos/sync-config.model.ts'
import { findSettings } from '#domains/registry/settings/settings.store.ts'
import { AppError, type FieldViolation, found, invalid, permissionDenied, refuseIfAny } from '#lib/errors.ts'
import { isUid, rootOf, top } from '#lib/uid.ts'
import { requireOwnTags } from '../follows/follows.service.ts'
import { countByUpstream, findFollowState, followStatesBelow } from '../follows/follows.store.ts'
import { type SyncStatus, syncStates } from '../follows/sync-states.model.ts'
import { destinations, maxChain, maxDestination, type Sync, usualTermMs } from './syncs.model.ts'
import * as store from './syncs.store.ts'

const pull = ['repo.list', 'manifest.list', 'tag.list', 'repo.blobs.get'].map(capabilityNumber)
const push = ['manifest.create', 'tag.create', 'tag.update'].map(capabilityNumber)

/** True if the rights allow the copy: pull permission on the source, and push permission on the target. */
export function mayCopy(rights: Work['caller']['rights'], source: string, repo: string): boolean {
  return rights.holds(source, pull) && rights.holds(repo, push)
}

/** True if the identity that configured the copy still has the permissions. Restrictions of its tokens do not matter. */
export async function mayStillCopy(app: App, { setter, operator, source, repo }: Sync): Promise<boolean> {
  const grants = operator ? new Map<string, bigint>() : await app.grants.of(setter)
  return grants !== undefined && mayCopy(createRights({ identity: setter, grants, operator }), source, repo)
}

/**
 * A cooldown policy of the source does not apply to its copy. So a caller to whom the policy applies could pull held-back content
 * from the copy.
 */
const boundThere = 'has a cooldown policy that applies to you, so you cannot set up a copy of it'

/**
 * Checks the requested source of a repository and resolves it to a uid. Throws PERMISSION_DENIED if the caller may not pull from
 * the source and push to the repository. Throws INVALID_ARGUMENT if a cooldown policy of the source applies to the caller.
 * Callers without permission can only keep the stored values.
 */
export async function validateSync(tx: Tx, by: By, { repo, before, asked }: SourceChange): Promise<ResolvedSync> {
  checkDestinations(asked)
  await requireOwnTags(tx, repo)
  const { caller, cause } = by
  const source = asked.source === before?.source ? asked.source : await resolveSource(tx, by, asked.source)
  const isSame = source === before?.source
  const may = mayCopy(caller.rights, source, repo)
  const bound = may && (await isBound(tx, caller.uid, source))
  const anew = new Date(Date.parse(cause.now) + usualTermMs).toISOString()
  const { expirationTime: earlier = anew } = before ?? {}
  const wanted = asked.expirationTime === '' ? (may && !bound ? anew : earlier) : (asked.expirationTime ?? earlier)
  const isRenewed = !isSame || wanted !== earlier
  if (isRenewed && !may)
    throw permissionDenied('you need the permissions to pull from the source and to push to the repository')
  if (isRenewed && bound) throw invalid({ field: 'sync_config.source', description: boundThere })
  if (!isSame) await checkChain(tx, source, repo)
  const expirationTime = isSame ? wanted : asked.expirationTime || anew
  const syncApks = asked.syncApks ?? before?.syncApks ?? false
  const settings = await findSettings(tx, rootOf(repo))
  return {
    config: {
      ...asked,
      source,
      expirationTime,
      syncApks,
      uniqueTags: settings?.uniqueTags ?? false,
      gracePeriod: settings?.eolGracePeriod ?? false,
    },
    mayCopy: may,
    setter: isRenewed ? { uid: caller.uid, operator: caller.operator } : undefined,
  }
}

/** Stores the state of a copy, or deletes it if the repository has no source. */
export async function saveSync(tx: Tx, repo: string, settled: ResolvedSync | undefined, now: string): Promise<void> {
  if (!settled) return store.deleteSync(tx, repo)
  const { source, expirationTime } = settled.config
  const { setter } = settled
  await store.saveSync(tx, repo, { source, expirationTime: expirationTime!, ...(setter ? { setter } : {}) }, now)
}

/**
 * Checks the terms for setting tags. Each run of a copy calls this, since the terms may be newer than the configuration of the
 * copy.
 */
export async function requireCopyTerms({ terms, eventTable }: App, repo: string): Promise<void> {
  await terms.check(repo, ...eventTable.methods('registry.tag.created'))
}

function checkDestinations(asked: SyncConfig): void {
  const problems = destinations.flatMap((cloud): FieldViolation[] => {
    const field = `sync_config.${cloud}`
    if (asked[cloud].length > maxDestination) {
      return [{ field, description: `must be at most ${maxDestination} characters long` }]
    }
    return /^\S*$/.test(asked[cloud]) ? [] : [{ field, description: 'must not contain spaces' }]
  })
  if (asked.source === '') problems.push({ field: 'sync_config.source', description: 'is required' })
  refuseIfAny(problems)
}

/**
 * Resolves a source to its uid. Permission is checked before existence: callers without pull permission get the same answer for a
 * missing source.
 */
async function resolveSource(tx: Tx, { caller }: By, text: string): Promise<string> {
  const unknown = invalid({ field: 'sync_config.source', description: 'must be a repository on this server' })
  if (isUid(text)) {
    if (!caller.rights.holds(text, pull)) throw permissionDenied()
    if (!(await findRepoRow(tx, { uid: text }))) throw unknown
    return text
  }
  const at = await findByPath(tx, text)
  const scope = at.repo ? at.repo.uid : at.group || top
  if (!caller.rights.holds(scope, pull)) throw permissionDenied()
  if (!at.repo) throw unknown
  return at.repo.uid
}

async function checkChain(tx: Tx, source: string, repo: string): Promise<void> {
  let at: string | undefined = source
  for (let length = 1; at !== undefined; length++) {
    if (at === repo) throw invalid({ field: 'sync_config.source', description: 'is itself a copy of this repository' })
    if (length > maxChain) {
      const description = `is the end of a chain of more than ${maxChain} copies`
      throw invalid({ field: 'sync_config.source', description })
    }
    at = await store.sourceOf(tx, at)
  }
}

/** Number of repositories that are copied from this repository, or that mirror this upstream. */
export async function countCopies(call: Call, source: string): Promise<number> {
  const { db } = call.app
  return (await store.countBySource(db, source, call.now)) + (await countByUpstream(db, source))
}

export async function getSyncStatus(call: Call, repo: string): Promise<Omit<SyncStatus, 'since'> & { since?: string }> {
  found(await findRepoRow(call.app.db, { uid: repo }), repoType, repo)
  const status = (await store.findStatus(call.app.db, repo)) ?? (await findFollowState(call.app.db, repo, call.now))
  return status ?? { repo, state: syncStates.unknown }
}

const maxStatuses = 100_000

/** Statuses of all copied repositories and mirrors of the organization. */
export async function listSyncStatuses({ app, now }: Call, organization: string): Promise<SyncStatus[]> {
  if (organization !== rootOf(organization)) {
    throw invalid({ field: 'registry_id', description: 'must be the uid of an organization' })
  }
  await requireGroup(app.db, organization)
  const copied = await store.statusesBelow(app.db, organization, maxStatuses + 1)
  const following = await followStatesBelow(app.db, organization, now, maxStatuses + 1)
  const statuses = [...copied, ...following].sort((a, b) => (a.repo < b.repo ? -1 : 1))
  if (statuses.length <= maxStatuses) return statuses
  const message = `the organization has more than ${maxStatuses} copies and mirrors; get the status of each repository instead`
  throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'LIST_TOO_LONG' })
}
