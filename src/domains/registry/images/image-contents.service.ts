// Contents of images: the queue of images to be read, and the results.
import { hash, randomBytes } from 'node:crypto'
import type { App } from '#app.ts'
import { isSameDistribution } from '#contents/ecosystems.ts'
import {
  type Distribution,
  GapList,
  type GapReason,
  isOfDistribution,
  type Package,
  PackageList,
  Unreadable,
  type UnreadableReason,
} from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import { isEnvelopeType } from '#contents/reports/envelope.ts'
import type { Reader as DbReader, Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { dueByOrganization } from '#lib/scheduling/read-scheduler.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import type { RegistryHooks } from '../hooks.ts'
import { type ManifestDocument, manifestTypes, maxListedManifests } from '../manifests/manifests.model.ts'
import { findManifest } from '../manifests/manifests.store.ts'
import {
  type ContentsRecord,
  hasContents,
  knowsDistribution,
  sbomTypes,
  statementType,
} from './image-contents.model.ts'
import * as store from './image-contents.store.ts'
import { hasCapacity } from './image-quota.service.ts'
import { sizeOfImage } from './images.service.ts'
import { packagesIn, packagesText } from './package-texts.service.ts'
import { type ImageRead, imagesOf, type Reading, readImage, readOwnSboms } from './read-image.ts'

export { createReader, type Reader, type ReaderLimits, readerLimits } from '#contents/reader.ts'
export type { ContentsRecord, ContentsSpan } from './image-contents.model.ts'
export type { DueRead } from './image-contents.store.ts'

/** Queues the images to be read after a manifest was stored. Call `app.images.pushed.notify` after the commit. */
export async function queueContents(
  tx: Tx,
  repo: number,
  digest: string,
  { mediaType, artifactType, subject, attested }: ManifestDocument,
  now: string,
): Promise<void> {
  if (hasContents(mediaType, artifactType)) await store.queueRead(tx, repo, digest, now)
  const isSbom = [...sbomTypes, statementType].some((type) => type === artifactType) || isEnvelopeType(artifactType)
  for (const image of new Set([...(isSbom && subject !== '' ? [subject] : []), ...attested])) {
    await queueAttested(tx, repo, image, now)
  }
}

/** Queues an image after a new statement about it. Call `app.images.pushed.notify` after the commit. */
export async function queueAttested(tx: Tx, repo: number, image: string, now: string): Promise<void> {
  const about = await store.typesOf(tx, repo, image)
  if (about && hasContents(about.mediaType, about.artifactType)) await store.queueRead(tx, repo, image, now)
}

/** Deletes contents of images of a deleted repository: of the given digests, or of all images. Returns the number of images. */
export async function forgetContents(tx: Tx, repo: number, digests?: readonly string[]): Promise<number> {
  return digests ? store.deleteSomeContents(tx, repo, digests) : store.deleteContents(tx, repo)
}

/** Contents of images of a repository. Images that were not read are left out. */
export async function contentsOf(
  reader: DbReader,
  repo: number,
  digests: readonly string[],
): Promise<ContentsRecord[]> {
  const found: ContentsRecord[] = []
  for (const some of chunks([...new Set(digests)], atOnce))
    found.push(...(await store.findContents(reader, repo, some)))
  return found
}

/** True if the repository has an image or index of this digest, even if it was not read yet. */
export async function isKnownImage(reader: DbReader, repo: number, digest: string): Promise<boolean> {
  const types = await store.typesOf(reader, repo, digest)
  return types !== undefined && hasContents(types.mediaType, types.artifactType)
}

/** Digests of the images of a repository with known contents. */
export const knownImages = store.listKnownImages

const atOnce = 100

/** Hashes of the package lists of images. Images without known packages of a distribution are left out. */
export async function knownContents(
  reader: DbReader,
  repo: number,
  digests: readonly string[],
): Promise<Map<string, string>> {
  const known = new Map<string, string>()
  const distinct = [...new Set(digests)]
  for (let done = 0; done < distinct.length; done += atOnce) {
    for (const { digest, state, source, packages } of await store.findContents(
      reader,
      repo,
      distinct.slice(done, done + atOnce),
    )) {
      if (state === 'known' && knowsDistribution(source)) known.set(digest, packages)
    }
  }
  return known
}

/** Packages of the list with this hash. A list can have megabytes, which count against the limits of `walk`. */
export async function packagesOf(reader: DbReader, list: string, walk: Walk): Promise<Package[]> {
  return (await packagesOfList(reader, list, walk)) ?? []
}

/** Packages of the list with this hash. Returns undefined if no image has the list any more. */
export async function packagesOfList(reader: DbReader, list: string, walk: Walk): Promise<Package[] | undefined> {
  await walk.pause()
  const text = await store.findPackages(reader, list)
  walk.spend(1, text?.length ?? 0)
  if (text === undefined) return undefined
  return packagesIn(text)
}

/** The next stored package list after the hash, once for each distribution that uses the list. */
export async function nextContents(reader: DbReader, after: string): Promise<store.ListWithOrganization[]> {
  return store.nextContents(reader, after)
}

/**
 * Hash of a package list and its distribution, since the same packages mean something else in another distribution. Lists of
 * earlier versions of the reader have the hash of their text alone.
 */
function listHash(text: string, { id, version }: Distribution): string {
  return hash('sha256', `${JSON.stringify([id, version])}\n${text}`)
}

/**
 * Result of a read. It is undefined if there is nothing to store: the image is deleted, or images of an index are still queued.
 */
type Outcome = Omit<ContentsRecord, 'digest' | 'packages'> & { packages: readonly Package[] }

const nothing = { packages: [], distribution: { id: '', version: '' }, reason: '', message: '', gaps: [] }

/** Reads one queued image and stores the result. Throws if the read should be tried again. */
export async function readContentsOf(
  app: App,
  reader: Reader,
  read: store.DueRead,
  signal: AbortSignal,
): Promise<void> {
  const outcome = await outcomeOf({ app, reader, repo: read.repo, signal }, read.digest)
  const looking = { app, log: app.log, signal }
  const size = outcome?.state === 'known' ? await sizeOfImage(looking, { id: read.repo }, read.digest) : undefined
  await finishRead(app, read, outcome, size)
}

async function outcomeOf(reading: Reading, digest: string): Promise<Outcome | undefined> {
  const { app, repo, signal } = reading
  const manifest = await findManifest(app.db, repo, digest)
  if (!manifest) return undefined
  try {
    if (manifestTypes[manifest.mediaType] === 'index') {
      const outcome = await readIndex(app.db, repo, imagesOf(manifest), signal)
      return outcome && { ...outcome, ...(await readOwnSboms(reading, digest, outcome)) }
    }
    return fromRead(await readImage(reading, manifest))
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return unreadable(error.reason, error.message)
  }
}

function fromRead({ contents, source }: ImageRead): Outcome {
  if (!contents) return { ...nothing, state: 'unknown', source }
  const { packages, distribution, gaps } = contents
  return { ...nothing, packages, distribution, gaps, state: 'known', source }
}

export function unreadable(reason: UnreadableReason | 'FAILED', message: string): Outcome {
  return { ...nothing, state: 'unreadable', source: 'none', reason, message }
}

/** Limits for the package lists of all images of an index together. */
const indexWalk = { steps: maxListedManifests, bytes: 64 * 1024 * 1024 }

/**
 * Joined contents of the images of an index. If one image is unreadable, the index is unreadable. An image without packages does
 * not make the index unreadable.
 */
async function readIndex(
  reader: DbReader,
  repo: number,
  images: readonly string[],
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  // The index is queued again when the last of these images was read.
  if (await store.isQueued(reader, repo, images)) return undefined
  const found = await contentsOf(reader, repo, images)
  const broken = found.find(({ state }) => state === 'unreadable')
  if (broken) return { ...broken, packages: [], message: `${broken.digest}: ${broken.message}`, source: 'images' }
  const known = found.filter(({ state }) => state === 'known')
  if (known.length === 0) return { ...nothing, state: 'unknown', source: 'images' }
  const walk = new Walk(indexWalk, signal, (limit) => {
    return new Unreadable('LIMIT_EXCEEDED', `the package lists of its images have more than ${limit}`)
  })
  // A list is compared for one distribution, so packages of another distribution would be mistaken for packages of this one.
  const { distribution } = known.find((one) => one.distribution.id !== '') ?? known[0]!
  const all = new PackageList()
  const gaps = new GapList()
  for (const [list, [one]] of Map.groupBy(known, ({ packages }) => packages)) {
    const { digest, distribution: of } = one!
    const found = await packagesOf(reader, list, walk)
    const isSame = isSameDistribution(of, distribution)
    const isOther = !isSame && of.id !== ''
    for (const each of found) if (!isOther || !isOfDistribution(each)) all.add(each)
    if (isSame || !found.some(isOfDistribution)) continue
    const named = `${of.id} ${of.version}`.trim()
    if (isOther)
      gaps.add('', 'UNSUPPORTED', `the packages of ${named} are only in the list of the image ${digest} itself`)
    else
      gaps.add('', 'UNIDENTIFIED', `${digest} does not name its distribution, so it is compared as ${distribution.id}`)
  }
  for (const { path, reason, message } of found.flatMap((one) => one.gaps)) gaps.add(path, reason as GapReason, message)
  const source = known.some((one) => knowsDistribution(one.source)) ? 'images' : 'languagesOfImages'
  return { ...nothing, state: 'known', source, distribution, packages: all.sorted(), gaps: gaps.all() }
}

/**
 * Ends the read and stores its result, unless the repository was deleted meanwhile. `size` is the number of bytes that a pull of
 * the image transfers.
 */
export async function finishRead(app: App, read: store.DueRead, given: Outcome | undefined, size = 0): Promise<void> {
  const { repo, digest } = read
  if (read.again && !given) return endReadAgain(app, read)
  const outcome = read.again && given ? await keepEarlierResult(app.db, read, given) : given
  const text = outcome?.state === 'known' ? packagesText(outcome.packages) : ''
  const packages = text === '' ? '' : listHash(text, outcome!.distribution)
  const key = { hash: packages, distribution: outcome?.distribution ?? nothing.distribution }
  const takeIn: Awaited<ReturnType<RegistryHooks['packagesRead']>>[] = []
  if (text !== '') {
    for (const packagesRead of app.hooks.packagesRead) takeIn.push(await packagesRead(key, outcome!.packages))
  }
  await app.db.tx(async (tx) => {
    const ended = await store.endRead(tx, read)
    if (!outcome || (!ended && !(await store.isQueued(tx, repo, [digest])))) return
    const [before] = await store.findContents(tx, repo, [digest])
    if (text !== '') await store.savePackages(tx, packages, text)
    const now = app.clock().toISOString()
    const found = { ...outcome, digest, packages }
    if (before && contentOf(before) !== contentOf(found)) await store.keepPast(tx, repo, before, now)
    await store.saveContents(tx, repo, found, now)
    if (given?.state === 'known') await store.saveSize(tx, repo, digest, size)
    if (before && before.packages !== '' && before.packages !== packages) await store.dropPackages(tx, before.packages)
    for (const take of takeIn) await take(tx, read.organization, now)
    const same = before?.state === outcome.state && before.packages === packages
    if (!same) await store.queueIndexesWith(tx, repo, digest, app.clock().toISOString())
  })
  if (outcome)
    app.log.info('image read', { repo, digest, state: outcome.state, source: outcome.source, reason: outcome.reason })
}

/** Text of the contents that reports depend on, for comparing two records. */
const contentOf = ({ state, packages, distribution, gaps }: ContentsRecord): string =>
  JSON.stringify([state, packages, distribution.id, distribution.version, gaps])

/**
 * Ends a repeated read without a result. Either the image is deleted and its stored contents remain, or the index waits for its
 * images.
 */
async function endReadAgain(app: App, read: store.DueRead): Promise<void> {
  const { repo, digest } = read
  const dueTime = new Date(app.clock().getTime() + indexWaitMs).toISOString()
  await app.db.tx(async (tx) => {
    if (await store.typesOf(tx, repo, digest)) return store.requeueRead(tx, read, { dueTime, attempts: 0 })
    if (await store.endRead(tx, read)) await store.keepContents(tx, repo, digest)
  })
}
const indexWaitMs = 60_000

/**
 * Keeps the result of an earlier version of the reader if the new read fails, for example because a layer has been deleted since.
 */
async function keepEarlierResult(
  reader: DbReader,
  { repo, digest }: store.DueRead,
  outcome: Outcome,
): Promise<Outcome> {
  if (outcome.state !== 'unreadable') return outcome
  const [before] = await store.findContents(reader, repo, [digest])
  if (before?.state !== 'known') return outcome
  const walk = new Walk(indexWalk, new AbortController().signal, (limit) => new Error(`a list of more than ${limit}`))
  const gaps = new GapList()
  for (const { path, reason, message } of before.gaps) gaps.add(path, reason as GapReason, message)
  const reason = outcome.reason === 'FAILED' ? 'DAMAGED' : (outcome.reason as GapReason)
  gaps.add('', reason, `only an earlier version of the server could read it: ${outcome.message}`)
  return { ...before, packages: await packagesOf(reader, before.packages, walk), gaps: gaps.all() }
}

/** Limits for queueing images to be read again: images of each organization, all images, and repositories that are examined. */
const mostAgain = { each: 20, all: 200, repos: 1000 }

/** Finds some images that an earlier version of the reader has read. The search begins at a random organization. */
export async function findOutdated({ db }: App, signal: AbortSignal): Promise<{ repo: number; digest: string }[]> {
  const found: { repo: number; digest: string }[] = []
  if (!(await store.hasOutdated(db))) return found
  const begin = randomBytes(20).toString('hex')
  const left = new Map<string, number>()
  let repos = 0
  for (const [from, to] of [
    [begin, undefined],
    ['', begin],
  ] as const) {
    for (let after = from; found.length < mostAgain.all && repos < mostAgain.repos && !signal.aborted; repos++) {
      const next = await store.nextOutdated(db, after)
      if (!next || (to !== undefined && next.uid > to)) break
      const organization = next.uid.slice(0, 40)
      const room = left.get(organization) ?? mostAgain.each - (await store.countAgain(db, organization, mostAgain.each))
      const digests = room > 0 ? await store.listOutdated(db, next.repo, room) : []
      found.push(...digests.map((digest) => ({ repo: next.repo, digest })))
      left.set(organization, room - digests.length)
      // Continues with the next repository, or with the next organization: "0" is the character after the slash, so it sorts
      // after all uids of this one.
      after = room - digests.length > 0 ? next.uid : `${organization}0`
    }
  }
  return found
}

export async function queueAgain(
  tx: Tx,
  images: readonly { repo: number; digest: string }[],
  now: string,
): Promise<void> {
  for (const { repo, digest } of images) await store.queueReadAgain(tx, repo, digest, now)
}

export type ReadOwner = {
  node: string
  isGone(node: string): boolean
  /** Organization whose image was read last. Organizations with a higher uid come first. */
  after?: string
}

/**
 * Claims an image that is due, or an image whose server has stopped. Organizations take turns. Returns undefined if no image is
 * due.
 */
export async function claimRead(app: App, { node, isGone, after = '' }: ReadOwner): Promise<store.DueRead | undefined> {
  for (;;) {
    // A server reads one image at a time. If it owns an image at this point, it failed to release that image after an earlier
    // read.
    const left = (await store.ownedReads(app.db)).find(({ owner }) => owner === node || isGone(owner))
    const next = left ?? (await nextDue(app, after))
    if (!next) return undefined
    const claimed = await app.db.tx((tx) => store.claimRead(tx, next, node), { isolation: 'rowLocks' })
    if (claimed) return claimed
  }
}

async function nextDue(app: App, after: string): Promise<store.DueRead | undefined> {
  const now = app.clock().toISOString()
  // Images that were never read come before images that are read again.
  for (const again of [0, 1]) {
    if (!(await store.isAnyDue(app.db, again, now))) continue
    const chosen = await app.images.turns.choose(dueReads(app, { after, now, again }))
    if (chosen) return chosen
  }
  return undefined
}

/** First due image of each organization that is within its quota. Organizations after `after` come first. */
async function* dueReads(
  app: App,
  { after, now, again }: { after: string; now: string; again: number },
): AsyncGenerator<store.DueRead> {
  for await (const due of dueByOrganization((behind) => store.nextRead(app.db, again, behind), after, now)) {
    if (await hasCapacity(app, due.organization)) yield due
  }
}

/**
 * True if an image of another organization is due while this image is read. If this image is read again, any image that was never
 * read counts.
 */
export async function othersWait(app: App, { organization, again }: store.DueRead): Promise<boolean> {
  const now = app.clock().toISOString()
  if (again && (await store.isAnyDue(app.db, 0, now))) return true
  for await (const due of dueReads(app, { after: organization, now, again })) {
    if (due.organization !== organization) return true
  }
  return false
}

/** Releases a claimed image. It is tried again after `ms`. */
export async function postponeRead(app: App, read: store.DueRead, ms: number, attempts = read.attempts): Promise<void> {
  const dueTime = new Date(app.clock().getTime() + ms).toISOString()
  await app.db.tx((tx) => store.requeueRead(tx, read, { dueTime, attempts }))
}
