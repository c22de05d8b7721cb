// Manages external scanners that the operator has configured, and queues scans on request. Credentials are stored encrypted and
// sent only to their scanner.
import { setImmediate } from 'node:timers/promises'
import type { App, Call } from '#app.ts'
import { scannableIn, stillIn } from '#domains/registry/images/scannable.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { chunks } from '#lib/chunks.ts'
import { isDigest } from '#lib/digest.ts'
import { type FieldViolation, found, invalid, limitExceeded, notFound, refuseIfAny, tooMany } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { ScannerError } from './adapter.service.ts'
import { countJobs, deleteSomeJobsFor, jobsOf } from './scan-jobs.store.ts'
import { queueFor } from './scan-queue.service.ts'
import { isFor, mostGroups, mostScanners, type Scanner, type ScannerInput, type ScanRequest } from './scanners.model.ts'
import * as store from './scanners.store.ts'

export type { Scanner, ScannerInput, ScanRequest } from './scanners.model.ts'

const jobsAtOnce = 500
const purpose = 'scanner-credential'
const scannerType = 'scanning.pinfold.dev/Scanner'
const repoType = 'registry.pinfold.dev/Repo'
const rowLocks = { isolation: 'rowLocks' } as const

export type ShownScanner = Scanner & { waiting: number }

export async function listScanners({ app }: Call): Promise<ShownScanner[]> {
  const [scanners, waiting] = [await store.listScanners(app.db), await countJobs(app.db)]
  return scanners.map((one) => ({ ...one, waiting: waiting.get(one.id) ?? 0 }))
}

/**
 * Creates or replaces the scanner with this name. If the URL of a scanner with a credential changes, the caller must supply the
 * credential again.
 */
export async function putScanner(call: Call, input: ScannerInput): Promise<ShownScanner> {
  const { db, cipher } = call.app
  checkScanner(input)
  const sealed =
    input.credential === undefined || input.credential === ''
      ? new Uint8Array()
      : cipher.encrypt(purpose, Buffer.from(input.credential))
  await db.tx(async (tx) => {
    const all = await store.listScanners(tx)
    const before = all.find(({ name }) => name === input.name)
    if (!before) {
      if (all.length >= mostScanners) throw limitExceeded('scanners', 'scanners', all.length, mostScanners)
      return store.insertScanner(tx, input, sealed, call.now)
    }
    const isKept = input.credential === undefined
    if (isKept && before.hasCredential && before.url !== input.url) {
      throw invalid({ field: 'scanner.credential', description: 'is required if the url changes' })
    }
    const credential = isKept ? await store.encryptedCredentialOf(tx, before.id) : sealed
    return store.patchScanner(tx, before.id, input, credential, call.now)
  })
  call.log.info('scanner saved', { name: input.name })
  call.app.scanning.scans.notify()
  return found(
    (await listScanners(call)).find(({ name }) => name === input.name),
    scannerType,
    input.name,
  )
}

/** Removes a scanner and its queued jobs. Reports of the scanner stay. */
export async function removeScanner({ app, log, signal }: Call, name: string): Promise<void> {
  const { id } = found(
    (await store.listScanners(app.db)).find((one) => one.name === name),
    scannerType,
    name,
  )
  // Deletes jobs in several transactions. There can be many jobs, and on SQLite a transaction blocks all other writers.
  while ((await app.db.tx((tx) => deleteSomeJobsFor(tx, id, jobsAtOnce))) > 0) {
    signal.throwIfAborted()
    await setImmediate()
  }
  if (!(await app.db.tx((tx) => store.deleteScanner(tx, name)))) throw notFound(scannerType, name)
  log.info('scanner removed', { name })
}

/** Number of images that one transaction queues for one scanner. */
const queuedAtOnce = 100

/**
 * Queues an image for the scanners of its repository. For an index, queues the images that the index lists. Returns the queued
 * jobs.
 */
export async function scanImage(call: Call, repoUid: string, digest: string): Promise<ScanRequest[]> {
  const { db, scanning } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), repoType, repoUid)
  const images = await scannableIn(db, repo.id, digest)
  if (images.length === 0) throw notFound('registry.pinfold.dev/Image', digest)
  const by = { actor: call.caller.uid, now: call.now }
  const full: string[] = []
  try {
    for (const scanner of await store.listScanners(db)) {
      if (!isFor(scanner, repo)) continue
      for (const some of chunks(images, queuedAtOnce)) {
        call.signal.throwIfAborted()
        const hasCapacity = await db.tx(async (tx) => {
          const left = found(await stillIn(tx, repo, some), repoType, repoUid)
          return !(await store.hasScanner(tx, scanner.id)) || queueFor(tx, by, scanner, repo, left)
        }, rowLocks)
        if (hasCapacity) continue
        full.push(scanner.name)
        break
      }
    }
  } finally {
    scanning.scans.notify()
  }
  if (full.length > 0)
    throw tooMany(
      `some images were not queued, because the organization has too many queued images for ${full.join(', ')}; try again in a minute`,
      60,
    )
  return jobsOf(
    db,
    repo.id,
    images.map((one) => one.digest),
  )
}

const headerOf = 'X-ScannerAdapter-API-Key'

/** URL and headers of the scanner, read in one query. Returns undefined if the scanner was removed. */
export async function addressOf(
  { db, cipher }: Pick<App, 'db' | 'cipher'>,
  { id }: Pick<Scanner, 'id'>,
): Promise<{ url: string; headers: Record<string, string> } | undefined> {
  const address = await store.findAddress(db, id)
  if (!address) return undefined
  const { url } = address
  if (address.credential.length === 0) return { url, headers: {} }
  const credential = cipher.decrypt(purpose, address.credential)?.toString()
  if (credential === undefined)
    throw new ScannerError('away', 'the credential of the scanner is encrypted with another master key; set it again')
  const key = credential.startsWith(`${headerOf}: `) ? credential.slice(headerOf.length + 2) : undefined
  return { url, headers: key === undefined ? { authorization: credential } : { [headerOf.toLowerCase()]: key } }
}

/** Throws INVALID_ARGUMENT for invalid settings. The message never contains the credential. */
function checkScanner({ name, url, groups, registryUrl, credential }: ScannerInput): void {
  const problems: FieldViolation[] = []
  const wrong = (field: string, description: string) => problems.push({ field: `scanner.${field}`, description })
  if (!/^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/.test(name) || name.length > 63) {
    wrong(
      'name',
      'must be lowercase letters and digits, with ".", "_" or "-" only between them, and at most 63 characters',
    )
  }
  if (!isScannerUrl(url)) wrong('url', 'must be an http or https URL without user, query and trailing slash')
  if (registryUrl !== '' && !isScannerUrl(registryUrl))
    wrong('registry_url', 'must be empty, or an http or https URL without user, query and trailing slash')
  if (groups.length > mostGroups || !groups.every(isUid))
    wrong('groups', `must have at most ${mostGroups} entries, which are uids of groups`)
  const forms = new RegExp(`^(?:Bearer|Basic|${headerOf}:) [\\x21-\\x7e]{1,8192}$`)
  if (credential !== undefined && credential !== '' && !forms.test(credential)) {
    wrong('credential', `must be "Bearer TOKEN", "Basic BASE64" or "${headerOf}: KEY"`)
  }
  refuseIfAny(problems)
}

/** True for a URL with http or https. A later request is refused if the settings do not allow http for its host. */
function isScannerUrl(text: string): boolean {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || text.length > 512 || text.endsWith('/')) return false
  return url.username === '' && url.password === '' && url.search === '' && url.hash === '' && !/[\s?#]/.test(text)
}
