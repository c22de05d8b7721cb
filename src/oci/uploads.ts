// /v2/<name>/blobs/uploads/… (distribution specification, "Pushing blobs").
import { createHash } from 'node:crypto'
import { ContentMissing } from '#blobs/blobs.ts'
import type { QuotaLimits } from '#domains/iam/groups/limits.service.ts'
import type { Upload } from '#domains/registry/blobs/blobs.model.ts'
import * as service from '#domains/registry/blobs/uploads.service.ts'
import { type Meter, meterOf } from '#domains/registry/blobs/usage.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { atRepo, type PushTarget } from '#domains/registry/repos/repos.service.ts'
import { type Algorithm, algorithmOf, digestOf } from '#lib/digest.ts'
import { allow, allowPush, type Target } from './access.ts'
import { deletedMeanwhile, OciError, wrongDigest } from './errors.ts'
import { mount } from './mount.ts'
import { observePush } from './observe.ts'
import { hasBody, receive, storeProblem } from './receive.ts'
import { answer, originOf, requireDigest } from './respond.ts'
import { idleLimit, type Visit } from './visit.ts'

/**
 * Starts an upload. If the request names a blob to mount, tries to mount it instead. If the request contains the whole blob,
 * stores it at once.
 */
export async function postUpload(visit: Visit): Promise<void> {
  const { query } = visit
  const mountDigest = query.get('mount')
  const digest = query.get('digest')
  if (mountDigest !== null) {
    requireDigest(mountDigest)
    const target = await allowPush(visit)
    if (await mount(visit, target, mountDigest, query.get('from'))) return answerCreated(visit, mountDigest)
    return startUpload(visit, target)
  }
  if (digest !== null) {
    requireDigest(digest)
    const isEmpty = digest === digestOf(algorithmOf(digest), new Uint8Array())
    if (hasBody(visit) || isEmpty)
      return observePush(visit, { type: 'blob', digest }, () => receiveWholeBlob(visit, digest))
  }
  return startUpload(visit, await allowPush(visit))
}

async function startUpload(visit: Visit, target: Target): Promise<void> {
  // If the upload quota of the organization is used up, the request must fail before the repository is created.
  if (!target.repo) await service.requireUpload(visit.call, target.uid)
  const upload = await service.startUpload(visit.call, target)
  if (!upload) throw deletedMeanwhile()
  answer(visit, 202, toProgressHeaders(visit, upload))
}

async function receiveWholeBlob(visit: Visit, digest: string): Promise<void> {
  const target = await allowPush(visit)
  await withMeter(visit, target, async (meter) => {
    const received = await receiveBody(visit, meter, algorithmOf(digest))
    if (!received) return
    answerPush(
      visit,
      digest,
      await service.pushBlob(visit.call, pushOf(visit, target, digest), received).catch(throwExplained),
    )
  })
}

const pushOf = (visit: Visit, target: PushTarget, digest: string) => ({ target, digest, origin: originOf(visit) })

function answerPush(visit: Visit, digest: string, pushed: service.PushedBlob): void {
  if (pushed === 'no repo') throw deletedMeanwhile()
  if (pushed === 'stored') {
    answerCreated(visit, digest)
    return
  }
  throw wrongDigest(pushed.other)
}

/**
 * Receives a body, and hashes it while it is written. Returns undefined if the client disconnected before the end of the body.
 */
async function receiveBody(visit: Visit, meter: Meter, algorithm: Algorithm): Promise<service.Received | undefined> {
  idleLimit(visit)
  const hash = createHash(algorithm)
  const part = await visit.registry.app.blobs.begin(lengthOf(visit), meter.organization).catch(throwExplained)
  try {
    const { size, cut } = await receive(visit, part, hash, (bytes) => meter.take(bytes))
    if (!cut) return { part, size, digest: `${algorithm}:${hash.digest('hex')}`, meter }
  } catch (error) {
    await part.discard()
    return throwExplained(error)
  }
  await part.discard()
  return undefined
}

/** Content-Length of the request, or 0 if the client did not send the length. */
const lengthOf = ({ req }: Visit): number => Number(req.headers['content-length'] ?? 0)

/**
 * Runs `work` with a meter that counts received bytes against the quota. The meter ends with `work`: then the bytes are stored,
 * or are not needed.
 */
async function withMeter(
  visit: Visit,
  target: { uid: string },
  work: (meter: Meter) => Promise<void>,
  limits?: QuotaLimits,
): Promise<void> {
  const meter = await meterOf(visit.call, target, lengthOf(visit), limits)
  try {
    await work(meter)
  } finally {
    meter.end()
  }
}

/** Receives the next chunk of an upload. The length of the chunk may be unknown. */
export async function patchUpload(visit: Visit, uid: string): Promise<void> {
  const { repo, upload } = await findUpload(visit, uid)
  checkRange(visit, upload)
  const limits = await service.requirePiece(visit.call, repo, upload)
  await withMeter(visit, repo, (meter) => receiveChunk(visit, repo, upload, meter), limits).catch(async (error) => {
    await service.endRefused(visit.call, upload, error)
    return throwExplained(error)
  })
}

async function receiveChunk(visit: Visit, repo: RepoRef, upload: Upload, meter: Meter): Promise<void> {
  idleLimit(visit)
  const isFirst = upload.size === 0
  const hash = isFirst ? createHash('sha256') : undefined
  const part = await visit.registry.app.blobs.begin(lengthOf(visit), meter.organization)
  let size = 0
  let cut = false
  let mayBeKept = false
  try {
    ;({ size, cut } = await receive(visit, part, hash, (bytes) => meter.take(bytes)))
    // If the client disconnected, the bytes received so far are stored. The client can continue after them.
    if (size > 0) {
      const hex = hash?.digest('hex')
      await part.finish(hex)
      await visit.registry.app.blobs.hold(part.name)
      const digest = hex === undefined ? '' : `sha256:${hex}`
      const added = { start: upload.size, size, location: part.name, digest }
      mayBeKept = true
      const isAdded = await service.addPart(visit.call, repo, upload, added, meter.limits)
      mayBeKept = isAdded
      if (!isAdded) throw await createConflict(visit, repo, upload.uid)
    } else await part.discard()
  } catch (error) {
    // If the outcome of the commit is unknown, the upload may refer to the chunk, so the chunk is not discarded. If the commit
    // failed, garbage collection deletes the chunk later.
    if (!mayBeKept || service.isQuotaError(error)) await part.discard()
    throw error
  }
  meter.end()
  if (!cut) answer(visit, 202, toProgressHeaders(visit, { uid: upload.uid, size: upload.size + size }))
}

/** Completes the upload, with a last chunk if the request has a body. */
export async function putUpload(visit: Visit, uid: string): Promise<void> {
  const digest = requireDigest(visit.query.get('digest') ?? '')
  await observePush(visit, { type: 'blob', digest }, async () => {
    const { repo, upload } = await findUpload(visit, uid)
    checkRange(visit, upload)
    if (!hasBody(visit)) return completeUpload(visit, repo, upload, digest)
    const closeWith = async (meter: Meter): Promise<void> => {
      const last = await receiveBody(visit, meter, algorithmOf(digest))
      if (last) await completeUpload(visit, repo, upload, digest, last)
    }
    await withMeter(visit, repo, closeWith).catch(async (error) => {
      await service.endRefused(visit.call, upload, error)
      throw error
    })
  })
}

async function completeUpload(
  visit: Visit,
  repo: RepoRef,
  upload: Upload,
  digest: string,
  last?: service.Received,
): Promise<void> {
  const push = pushOf(visit, atRepo(visit.registry.app.db, repo), digest)
  answerPush(visit, digest, await service.closeUpload(visit.call, push, upload, last).catch(throwExplained))
}

/** Sends the progress of the upload. */
export async function getUpload(visit: Visit, uid: string): Promise<void> {
  const { upload } = await findUpload(visit, uid)
  answer(visit, 204, toProgressHeaders(visit, upload))
}

export async function deleteUpload(visit: Visit, uid: string): Promise<void> {
  const { upload } = await findUpload(visit, uid)
  await service.cancelUpload(visit.call, upload)
  answer(visit, 204)
}

async function findUpload(visit: Visit, uid: string): Promise<{ repo: RepoRef; upload: Upload }> {
  const repo = await allow(visit, 'push')
  const upload = await service.findUpload(visit.call, repo, uid)
  if (!upload) throw createUnknownUpload()
  return { repo, upload }
}

function createUnknownUpload(): OciError {
  return new OciError(
    'BLOB_UPLOAD_UNKNOWN',
    'the upload does not exist, or was completed, canceled or expired; start a new one',
  )
}

/** Throws if the chunk does not begin where the upload ends, or if Content-Range and Content-Length differ. */
function checkRange(visit: Visit, upload: Upload): void {
  const given = visit.req.headers['content-range']
  if (given === undefined) return
  const match = /^(?:bytes )?(\d{1,15})-(\d{1,15})(?:\/(?:\d+|\*))?$/.exec(given)
  if (!match) throw new OciError('BLOB_UPLOAD_INVALID', 'Content-Range must be a range of bytes such as 0-1023')
  const [start, end] = [Number(match[1]), Number(match[2])]
  if (start !== upload.size || end < start) throw createRangeError(visit, upload)
  const length = visit.req.headers['content-length']
  if (length !== undefined && Number(length) !== end - start + 1) {
    throw new OciError('SIZE_INVALID', 'Content-Range and Content-Length have different lengths', { status: 400 })
  }
}

function createRangeError(visit: Visit, upload: Upload): OciError {
  return new OciError(
    'BLOB_UPLOAD_INVALID',
    `the upload has ${upload.size} bytes so far, so the next chunk must start at byte ${upload.size}`,
    {
      status: 416,
      headers: toProgressHeaders(visit, upload),
    },
  )
}

async function createConflict(visit: Visit, repo: RepoRef, uid: string): Promise<OciError> {
  const upload = await service.findUpload(visit.call, repo, uid)
  return upload ? createRangeError(visit, upload) : createUnknownUpload()
}

/**
 * Headers with the progress of an upload. `Range` cannot express zero bytes, so an empty upload has `0-0`, like an upload of one
 * byte.
 */
function toProgressHeaders({ written }: Visit, { uid, size }: Pick<Upload, 'uid' | 'size'>): Record<string, string> {
  return {
    location: `/v2/${written}/blobs/uploads/${uid}`,
    range: `0-${Math.max(0, size - 1)}`,
    'docker-upload-uuid': uid,
  }
}

function answerCreated(visit: Visit, digest: string): void {
  answer(visit, 201, { location: `/v2/${visit.written}/blobs/${digest}`, 'docker-content-digest': digest })
}

/**
 * Converts an error of the blob store to an OCI error. Missing content means that another request has completed or canceled the
 * upload.
 */
function throwExplained(error: unknown): never {
  throw error instanceof ContentMissing ? createUnknownUpload() : storeProblem(error)
}
