// /v2/<name>/manifests/<reference> (distribution specification, "Pulling manifests", "Pushing Manifests", "Deleting").

import * as deletions from '#domains/registry/deletions/deletions.service.ts'
import {
  ManifestLimit,
  ManifestProblem,
  readManifest,
  readNewManifest,
} from '#domains/registry/manifests/manifest-document.ts'
import { type Manifest, maxManifestBytes, maxTagsAtOnce } from '#domains/registry/manifests/manifests.model.ts'
import * as service from '#domains/registry/manifests/manifests.service.ts'
import * as pushes from '#domains/registry/pushes/pushes.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { deleteTagNamed } from '#domains/registry/tags/tags.service.ts'
import { type Algorithm, algorithmOf, digestOf, isDigest } from '#lib/digest.ts'
import { isTagName, tagPattern } from '#lib/oci-names.ts'
import { readPrecondition } from '#lib/preconditions.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import { allow, allowPush, requireTagDeletionTerms } from './access.ts'
import { deletedMeanwhile, OciError, wrongDigest } from './errors.ts'
import { bringManifest, isOnDemand, refreshTag } from './mirrors.ts'
import { observePull, observePush, type Served } from './observe.ts'
import { receiveSmall } from './receive.ts'
import { answer, answerWith, type Headers, isUnchanged, originOf, requireDigest, version } from './respond.ts'
import { checkDigest, headersOfEnd, requireClean, requireGates } from './views/checks.ts'
import { type PulledTag, pullTagFor } from './views/pulls.ts'
import { idleLimit, type Visit } from './visit.ts'

type Target = { digest: string } | { tag: string }

/** A reference with a colon is a digest, since tags cannot contain a colon. */
function targetOf(reference: string): Target {
  return reference.includes(':') ? { digest: requireDigest(reference) } : { tag: reference }
}

/** Serves GET and HEAD of a manifest. */
export async function getManifest(visit: Visit, reference: string): Promise<void> {
  const target = targetOf(reference)
  await observePull(visit, { type: 'manifest', digest: '', ...target }, async () => {
    const repo = await allow(visit, 'manifest.read', target)
    const pulled = await (isPlain(visit, repo) ? pullPlain : pullChecked)(visit, repo, target)
    if (!pulled) throw createUnknownManifest(reference)
    return serve(visit, repo, pulled)
  })
}

/** True if no policy can refuse or change a pull: the repository is no mirror, and the path has no view. */
function isPlain({ view, call: { app, caller } }: Visit, repo: RepoRef): boolean {
  if (view || repo.follow !== undefined) return false
  return app.contentRules.isEmpty() && app.gates.isEmpty() && (caller.uid === '' || app.pullRules.isEmpty())
}

async function pullPlain({ call }: Visit, repo: RepoRef, target: Target): Promise<PulledTag | undefined> {
  if ('digest' in target) return service.pullDigest(call, repo, target.digest)
  return isTagName(target.tag) ? service.pullTag(call, repo, target.tag) : undefined
}

async function pullChecked(visit: Visit, repo: RepoRef, target: Target): Promise<PulledTag | undefined> {
  if ('tag' in target && !isTagName(target.tag)) return undefined
  const pulled: PulledTag | undefined = await ('tag' in target
    ? pullTag(visit, repo, target.tag)
    : pullDigest(visit, repo, target.digest))
  if (!pulled) return undefined
  await requireClean(visit, repo, { type: 'manifest', digest: pulled.manifest.digest })
  if ('digest' in target) await checkDigest(visit, repo, 'manifest', target.digest)
  await requireGates(visit, repo, pulled.manifest.digest)
  return 'tag' in target ? pulled : { ...pulled, headers: await headersOfEnd(visit, repo, target.digest) }
}

async function pullTag(visit: Visit, repo: RepoRef, tag: string): Promise<PulledTag | undefined> {
  // Views serve only stored content, so the upstream is not checked.
  const headers: Headers = isOnDemand(repo) && !visit.view ? await refreshTag(visit, repo, tag) : {}
  const pulled = await pullTagFor(visit, repo, tag)
  if (!pulled) return undefined
  // The first warning: the upstream may have a newer image for the tag. The second: the view or cooldown policy selected an older
  // image.
  const warnings = [headers.warning, pulled.headers?.warning].filter((one) => one !== undefined).map(String)
  return { ...pulled, headers: { ...headers, ...pulled.headers, ...(warnings.length > 0 && { warning: warnings }) } }
}

async function pullDigest(visit: Visit, repo: RepoRef, digest: string): Promise<service.Pulled | undefined> {
  const pulled = await service.pullDigest(visit.call, repo, digest)
  if (pulled || !isOnDemand(repo) || !(await bringManifest(visit, repo, digest))) return pulled
  return service.pullDigest(visit.call, repo, digest)
}

function serve(visit: Visit, repo: RepoRef, pulled: PulledTag): Served {
  const { manifest, since } = pulled
  const { digest, mediaType, content } = manifest
  const etag = `"${digest}"`
  const headers: Headers = { 'docker-content-digest': digest, etag, ...pulled.headers }
  // Clients read this header to wait until the tag has had the digest for a minimum time.
  if (since !== undefined) headers['last-modified'] = new Date(since).toUTCString()
  const served = { repo, digest, mediaType }
  // In a view or under a cooldown policy, a tag can go back to an older digest. Then `If-Modified-Since` is ignored.
  if (isUnchanged(visit, etag, pulled.isAged ? undefined : since)) {
    visit.res.writeHead(304, headers)
    visit.res.end()
    return served
  }
  answerWith(visit, content, { ...headers, 'content-type': mediaType, ...version })
  return served
}

export async function putManifest(visit: Visit, reference: string): Promise<void> {
  const target = targetOf(reference)
  await observePush(visit, { type: 'manifest', digest: '', ...target }, async () => {
    const tags = tagsOf(visit, target)
    const precondition = preconditionOf(visit, target)
    const pushTarget = await allowPush(visit, { setsTags: tags.length > 0 })
    // The listener limits the total time of HTTP/1.1 requests only. HTTP/2 requests get an idle timeout here.
    if (visit.req.httpVersionMajor === 2) idleLimit(visit)
    const content = await receiveSmall(visit, maxManifestBytes)
    const manifest = verifyDigest(content, target)
    const document = await readDocument(visit, pushTarget.repo, manifest)
    if (content.length > turnBytes) await turns.next()
    const result = await pushes.pushManifest(visit.call, {
      target: pushTarget,
      manifest: { ...manifest, mediaType: document.mediaType },
      document,
      tags,
      mayTag: pushTarget.mayTag,
      precondition,
      origin: originOf(visit),
    })
    if (result === 'no repo') throw deletedMeanwhile()
    if (result !== 'stored') throw createPushError(result)
    answer(visit, 201, {
      location: `/v2/${visit.written}/manifests/${manifest.digest}`,
      'docker-content-digest': manifest.digest,
      ...(document.subject === '' ? {} : { 'oci-subject': document.subject }),
      ...('digest' in target && tags.length > 0 ? { 'oci-tag': tags } : {}),
    })
  })
}

/** Tags to set: the tag in the path, or those in the query parameters of a push by digest. */
function tagsOf({ query }: Visit, target: Target): string[] {
  const tags = 'tag' in target ? [target.tag] : [...new Set(query.getAll('tag'))]
  if (tags.length > maxTagsAtOnce) {
    throw new OciError(
      'MANIFEST_INVALID',
      `the push sets ${tags.length} tags, but at most ${maxTagsAtOnce} are allowed`,
      { status: 414 },
    )
  }
  const bad = tags.find((tag) => !isTagName(tag))
  if (bad === undefined) return tags
  throw new OciError('MANIFEST_INVALID', `the tag is invalid: it must match ${tagPattern.source}`, {
    detail: { tag: bad.slice(0, 200) },
  })
}

function verifyDigest(content: Buffer, target: Target): Omit<Manifest, 'mediaType'> {
  const algorithm: Algorithm = 'digest' in target ? algorithmOf(target.digest) : 'sha256'
  const digest = digestOf(algorithm, content)
  if ('digest' in target && target.digest !== digest) {
    throw wrongDigest(digest)
  }
  return { digest, content }
}

/** Reads a pushed manifest. A manifest above the limits is accepted only if the repository already has it. */
async function readDocument(
  { req, call }: Visit,
  repo: RepoRef | undefined,
  { digest, content }: Pick<Manifest, 'digest' | 'content'>,
) {
  const contentType = req.headers['content-type']
  try {
    return readNewManifest(content, contentType)
  } catch (error) {
    const isStored = error instanceof ManifestLimit && repo && (await service.pullDigest(call, repo, digest))
    if (!isStored) throw toInvalidManifest(error)
  }
  try {
    return readManifest(content, contentType)
  } catch (error) {
    throw toInvalidManifest(error)
  }
}

function toInvalidManifest(error: unknown): unknown {
  if (!(error instanceof ManifestProblem)) return error
  return new OciError('MANIFEST_INVALID', error.message, error.unsupported ? { status: 415 } : {})
}

const maxNamed = 20

function createPushError(problem: pushes.PushProblem): OciError {
  if ('nested' in problem) return new OciError('MANIFEST_INVALID', problem.nested)
  if ('wrong' in problem) {
    const { digest, size, stored } = problem.wrong
    const message = `the manifest lists ${digest} with ${size} bytes, but it has ${stored} bytes`
    return new OciError('MANIFEST_INVALID', message, { detail: problem.wrong })
  }
  const { blobs, manifests } = problem.missing
  const what = blobs.length > 0 ? 'blobs' : 'manifests'
  return new OciError(
    'MANIFEST_BLOB_UNKNOWN',
    `the manifest lists ${what} that the repository does not have; push them first`,
    {
      detail: { blobs: blobs.slice(0, maxNamed), manifests: manifests.slice(0, maxNamed) },
    },
  )
}

export async function deleteManifest(visit: Visit, reference: string): Promise<void> {
  const target = targetOf(reference)
  const precondition = preconditionOf(visit, target)
  const repo = await allow(visit, 'digest' in target ? 'manifest.delete' : 'tag.delete', target)
  await requireTagDeletionTerms(visit, repo)
  const deleted =
    'digest' in target
      ? await deletions.deleteManifest(visit.call, repo, target.digest, originOf(visit))
      : isTagName(target.tag) && (await deleteTagNamed(visit.call, repo, target.tag, precondition))
  if (!deleted) throw createUnknownManifest(reference)
  answer(visit, 202)
}

/**
 * Reads `If-Match` and `If-None-Match`, which compare the current digest of the tag (distribution-spec, issue 251). Throws
 * UNSUPPORTED if the path has a digest, since the content of a digest never changes.
 */
function preconditionOf({ req: { headers } }: Visit, target: Target) {
  try {
    const precondition = readPrecondition(headers['if-match'], headers['if-none-match'])
    if (!precondition || 'tag' in target) return precondition
  } catch (error) {
    throw new OciError('UNSUPPORTED', (error as Error).message, { status: 400 })
  }
  const message = 'If-Match and If-None-Match are only allowed for a tag, but the path has a digest'
  throw new OciError('UNSUPPORTED', message, { status: 400 })
}

function createUnknownManifest(reference: string): OciError {
  return new OciError(
    'MANIFEST_UNKNOWN',
    `the repository does not have this ${isDigest(reference) ? 'manifest; check the digest' : 'tag; check its name'}`,
    {
      detail: { [isDigest(reference) ? 'digest' : 'tag']: reference.slice(0, 200) },
    },
  )
}
