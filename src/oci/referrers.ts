// /v2/<name>/referrers/<digest> (distribution specification, "Listing Referrers").
import { indexType } from '#domains/registry/manifests/manifests.model.ts'
import { listReferrers } from '#domains/registry/manifests/manifests.service.ts'
import { allow } from './access.ts'
import { OciError } from './errors.ts'
import { answerWith, requireDigest } from './respond.ts'
import type { Visit } from './visit.ts'

/**
 * Serves an index of the manifests whose subject is the digest. If there are more, a Link header has the URL of the next page.
 */
export async function getReferrers(visit: Visit, reference: string): Promise<void> {
  const subject = requireDigest(reference)
  const repo = await allow(visit, 'referrers.read', { digest: subject }).catch(ignoreUnknownRepo)
  const { query } = visit
  const last = query.get('last') ?? ''
  const artifactType = typeOf(visit)
  const filter = { subject, artifactType, after: last === '' ? '' : requireDigest(last) }
  const { referrers, more } = repo ? await listReferrers(visit.call, repo, filter) : { referrers: [], more: false }
  const manifests = referrers.map(({ mediaType, digest, size, artifactType: type, annotations }) => ({
    mediaType,
    digest,
    size,
    ...(type === '' ? {} : { artifactType: type }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  }))
  answerWith(visit, JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests }), {
    'content-type': indexType,
    ...(artifactType === undefined ? {} : { 'oci-filters-applied': 'artifactType' }),
    ...(more ? { link: `<${nextOf(visit, reference, manifests.at(-1)!.digest)}>; rel="next"` } : {}),
  })
}

/**
 * Artifact type to filter by, or undefined for no filter. Media types can have a plus. Clients often do not encode the plus, so
 * it arrives as a space.
 */
function typeOf({ query }: Visit): string | undefined {
  return query.get('artifactType')?.replaceAll(' ', '+') || undefined
}

/**
 * Ignores NAME_UNKNOWN, so that a missing repository has no referrers. For clients, 404 means that the registry lacks the
 * endpoint; they then search for referrers in tags.
 */
function ignoreUnknownRepo(error: unknown): undefined {
  if (!(error instanceof OciError) || error.code !== 'NAME_UNKNOWN') throw error
  return undefined
}

function nextOf({ written, query }: Visit, subject: string, last: string): string {
  const next = new URLSearchParams(query)
  const artifactType = next.get('artifactType')
  if (artifactType !== null) next.set('artifactType', artifactType.replaceAll(' ', '+'))
  next.set('last', last)
  return `/v2/${written}/referrers/${subject}?${next}`
}
