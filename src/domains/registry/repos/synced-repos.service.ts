// Fields that a copied repository takes from its source: the catalog fields and the readme.
import type { Work } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { emit } from '#domains/outbox/emit.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { snakeCase } from '#lib/fields.ts'
import { adminFields, type Repo, toRepoResource } from './repos.model.ts'
import * as store from './repos.store.ts'
import type { SyncConfig } from './sync-config.model.ts'

type Catalogue = Pick<Repo, (typeof adminFields)[number]>
const textOf = (repo: Catalogue): string => JSON.stringify(adminFields.map((name) => repo[name]))

/** Repository with the fields of its source. Throws INVALID_ARGUMENT if the request has other values for these fields. */
export function withSource<T extends Catalogue & { description: string }>(
  asked: T,
  before: Catalogue | undefined,
  source: Repo | undefined,
): T {
  const empty: Catalogue = { catalogTier: 0, bundles: [], aliases: [], activeTags: [] }
  const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
  const problems = adminFields.flatMap((name): FieldViolation[] => {
    if (same(asked[name], (before ?? empty)[name]) || same(asked[name], source?.[name])) return []
    return [{ field: snakeCase(name), description: 'comes from the source of the copy and cannot be changed' }]
  })
  refuseIfAny(problems)
  if (!source) return asked
  const { catalogTier, bundles, aliases, activeTags } = source
  return { ...asked, catalogTier, bundles, aliases, activeTags, description: asked.description || source.description }
}

/** Checks the terms for setting tags. Copies set tags too, so the terms also apply to them. Call this before the transaction. */
export async function requireSyncTerms({ app }: Work, scope: string, asked: SyncConfig | undefined): Promise<void> {
  if (asked) await app.terms.check(scope, ...app.eventTable.methods('registry.tag.created'))
}

/** Copies the current fields of the source to the repository. Returns true if copies also get unique tags. */
export async function followSource(
  work: Work,
  lease: Lease,
  { repo: uid, source }: { repo: string; source: string },
): Promise<boolean> {
  const { db } = work.app
  const [repo, from] = [await store.findRepo(db, uid), await store.findRepo(db, source)]
  if (!repo || !from) return false
  const uniqueTags = repo.syncConfig?.uniqueTags ?? false
  const readme = await store.readmeOf(db, source)
  if (textOf(repo) === textOf(from) && readme === (await store.readmeOf(db, uid))) return uniqueTags
  await lease.tx(async (tx) => {
    const before = await store.findRepo(tx, uid)
    if (before?.syncConfig?.source !== source) return
    const { catalogTier, bundles, aliases, activeTags } = from
    const after: Repo = { ...before, catalogTier, bundles, aliases, activeTags, updateTime: work.cause.now }
    await store.setReadme(tx, uid, readme, work.cause.now)
    await store.patchRepo(tx, before, after)
    await emit(tx, work, 'registry.repo.updated', {
      subject: uid,
      resource: toRepoResource(after),
    })
  })
  return uniqueTags
}
