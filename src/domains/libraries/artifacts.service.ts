import type { Call } from '#app.ts'
import { AppError, type FieldViolation, invalid, notFound, refuseIfAny } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import {
  type Artifact,
  type ArtifactVersion,
  artifactType,
  type Ecosystem,
  maxNameLength,
  plainName,
} from './artifacts.model.ts'
import * as store from './artifacts.store.ts'
import { catalogScopeOf, readCuda } from './catalog-scopes.ts'

export type ArtifactFilter = {
  ecosystems: readonly Ecosystem[]
  query: string
  /** Empty for all versions of CUDA. */
  cudaVersion: string
  remediated: boolean
}

export async function listArtifacts(
  call: Call,
  { page, filter }: ListQuery<ArtifactFilter>,
): Promise<Listed<Artifact>> {
  checkEcosystems(filter.ecosystems)
  const cuda = filter.cudaVersion === '' ? undefined : readCuda(filter.cudaVersion)
  if (filter.cudaVersion !== '' && !cuda) {
    throw invalid({ field: 'cuda_version', description: 'must be a version such as 12 or 12.1' })
  }
  const query = filter.query.trim()
  // The result is empty for a query that is longer than any name, and for a CUDA version in an ecosystem other than Python.
  const nothing = canSeeNone(call) || query.length > maxNameLength
  const ecosystems = nothing ? [] : filter.ecosystems.filter((one) => !cuda || one === 'python')
  const scopes = ecosystems.map((ecosystem) => ({
    ecosystem,
    catalogScope: catalogScopeOf(ecosystem, { ...(cuda ? { cuda } : {}), remediated: filter.remediated }),
    text: plainName(ecosystem, query).toLowerCase(),
  }))
  const { rows, total } = await store.listArtifacts(call.app.db, scopes, page)
  return toListed(call, page, rows, total)
}

export async function listArtifactVersions(
  call: Call,
  { page, filter: { artifact } }: ListQuery<{ artifact: string }>,
): Promise<Listed<ArtifactVersion>> {
  const { db } = call.app
  const found = canSeeNone(call) ? undefined : await store.findArtifact(db, artifact)
  if (!found) throw notFound(artifactType, artifact)
  return toListed(call, page, await store.listVersions(db, found, page), found.versionCount)
}

const versionsAtOnce = 1000
/** Limit on the versions in one response. Libraries usually have fewer versions. */
const maxVersions = 50_000

/** All versions of a library, the newest first. Throws RESOURCE_EXHAUSTED if there are too many versions for one response. */
export async function listAllVersions(call: Call, artifact: string): Promise<ArtifactVersion[]> {
  const versions: ArtifactVersion[] = []
  for (let after: Page['after']; ; after = { value: versions.at(-1)!.version, uid: versions.at(-1)!.uid }) {
    call.signal.throwIfAborted()
    const order = { field: 'version', column: 'version', desc: true }
    const page: Page = { order, after, size: versionsAtOnce, skip: 0, binding: '' }
    const { items, next } = await listArtifactVersions(call, { uidp: undefined, page, filter: { artifact } })
    versions.push(...items)
    if (next === '') return versions
    if (versions.length >= maxVersions) {
      const message = `the library has more than ${maxVersions} versions, which are too many for one response; use version 2 of the API, which has pages`
      throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'LIST_TOO_LONG' })
    }
  }
}

/** Number of libraries of each ecosystem, in the requested order. */
export async function countArtifacts(call: Call, ecosystems: readonly Ecosystem[]): Promise<[Ecosystem, number][]> {
  checkEcosystems(ecosystems)
  if (canSeeNone(call)) return ecosystems.map((one) => [one, 0])
  return await Promise.all(
    ecosystems.map(async (one): Promise<[Ecosystem, number]> => {
      return [one, await store.countArtifacts(call.app.db, catalogScopeOf(one, {}))]
    }),
  )
}

/**
 * True if the caller sees no libraries. Libraries belong to no scope: callers with the capability on any group see all of them.
 */
function canSeeNone(call: Call): boolean {
  return call.reach.length === 0
}

function checkEcosystems(ecosystems: readonly Ecosystem[]): void {
  const missing: FieldViolation[] =
    ecosystems.length === 0 ? [{ field: 'ecosystems', description: 'must have at least one ecosystem' }] : []
  refuseIfAny(missing)
}
