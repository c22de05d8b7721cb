// Reads the data sources in the settings when they are due, in the same way as the sync command.

import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Work } from '#app.ts'
import { AppError } from '#lib/errors.ts'
import { freeBytes } from '#lib/files/room.ts'
import { OutgoingError } from '#lib/net/outgoing.ts'
import { automatic, type Source, sourceNamed, withNeeded } from '#sources/definitions.ts'
import { type RecordSink, type Refused, syncSource } from '#sources/sync-source.ts'
import { WrongRecord } from '#sources/values.ts'
import type { PutCounts } from '../records/records.model.ts'
import { countRecords, findSource, type StoredSource } from '../records/records.store.ts'
import * as service from './sources.service.ts'

type SyncWork = Pick<Work, 'app' | 'log'>
/** Environment of a sync. `mostReadingMs` is the time limit for one source, 6 hours by default. */
export type SyncSite = { signal: AbortSignal; holds: () => boolean; now: () => Date; mostReadingMs?: number }

const hourMs = 3_600_000
/** Shortest delay after a failure. The delay grows with each failure of a source, up to the source's normal interval. */
const retryMs = 5 * 60_000
/** Time limit for reading one source. Valid sources take less time. An endless source must not delay the others. */
const longestReadingMs = 6 * hourMs
/** Limit on the bytes of one download. A download may also use at most half of the free disk space. */
const maxDownload = 2 ** 31
/** Age in ms at which downloaded files are deleted that a killed server left behind. */
const abandonedMs = 24 * hourMs

/** Reads the due data sources one after the other. If one source fails, the run continues. */
export async function syncDue(work: SyncWork, site: SyncSite): Promise<{ sources: number; failed: number }> {
  const sum = { sources: 0, failed: 0 }
  const { vulnerabilitySyncHours: hours, vulnerabilitySources: names, vulnerabilityMirror: given } = work.app.config
  if (hours === 0) return sum
  const mirror = given === '' || given.endsWith('/') ? given : `${given}/`
  const all: { name: string; source: Source; known: StoredSource | undefined }[] = []
  const needed = names.includes(automatic) ? await service.listNeeded(work) : []
  for (const name of withNeeded(names, needed)) {
    const source = sourceNamed(name, mirror)
    if (source) all.push({ name, source, known: await findSource(work.app.db, name) })
  }
  const tried = ({ known }: { known: StoredSource | undefined }) => known?.tryTime ?? ''
  // The source whose last attempt is the oldest comes first.
  all.sort((one, other) => (tried(one) === tried(other) ? 0 : tried(one) < tried(other) ? -1 : 1))
  for (const { name, source, known } of all) {
    if (dueTime(known, hours * hourMs) > site.now().getTime()) continue
    if (!site.holds()) break
    const { error, refused } = await syncOne(work, source, known, site)
    sum.sources++
    if (error === '') continue
    sum.failed++
    // A server without internet access fails all the time, so each reason is logged only once.
    if (error === known?.error) continue
    work.log.warn('reading a vulnerability data source failed', {
      source: name,
      reason: error,
      refused: refused.length,
    })
  }
  return sum
}

/** Due time of a source in milliseconds since 1970. */
function dueTime(known: StoredSource | undefined, periodMs: number): number {
  if (!known || known.tryTime === '') return 0
  const tried = Date.parse(known.tryTime)
  const read = known.fetchTime === '' ? undefined : Date.parse(known.fetchTime)
  if (known.error === '') return read !== undefined && read >= tried ? read + periodMs : 0
  const failing = read === undefined ? hourMs : tried - read - periodMs
  return tried + Math.min(Math.max(failing, retryMs), periodMs)
}

async function syncOne(work: SyncWork, source: Source, known: StoredSource | undefined, site: SyncSite) {
  const { app } = work
  const { name, url, licence, ecosystems } = source
  const lost = new AbortController()
  const signal = AbortSignal.any([site.signal, lost.signal])
  const mostMs = site.mostReadingMs ?? longestReadingMs
  const overdue = AbortSignal.timeout(mostMs)
  const folder = await emptyFolder(app.config.data)
  try {
    const { fingerprint = '', buildTime = '' } = known ?? {}
    const run = await service.beginSource(work, { name, url, licence, ecosystems })
    const maxBytes = Math.min(maxDownload, Math.floor((await freeBytes(folder)) / 2))
    const fetching = { outgoing: app.toSources, folder, fingerprint, buildTime, maxBytes }
    const { fetchSource } = await import('#sources/fetch.ts')
    const fetch = () =>
      withinDisk(maxBytes, fetchSource(source, { ...fetching, signal: AbortSignal.any([signal, overdue]) }))
    const onProgress = () => {
      if (overdue.aborted) throw new WrongRecord(`reading the data source takes longer than ${mostMs / hourMs} hours`)
      if (!site.holds()) lost.abort(new Error('another server reads the data sources'))
    }
    return await syncSource(fetch, await createSink(work, run), { signal, onProgress })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Explains a download that is too large for the disk. */
async function withinDisk<T>(maxBytes: number, fetched: Promise<T>): Promise<T> {
  try {
    return await fetched
  } catch (error) {
    if (!(error instanceof OutgoingError) || error.reason !== 'too-large' || maxBytes === maxDownload) throw error
    throw new WrongRecord(
      `the download is larger than ${Math.floor(maxBytes / 2 ** 20)} MiB, half of the free space in the data folder`,
    )
  }
}

async function emptyFolder(data: string): Promise<string> {
  await mkdir(data, { recursive: true, mode: 0o700 })
  for (const name of await readdir(data)) {
    if (!name.startsWith('sync-')) continue
    const left = await stat(join(data, name)).catch(() => undefined)
    if (left && Date.now() - left.mtimeMs > abandonedMs) await rm(join(data, name), { recursive: true, force: true })
  }
  return mkdtemp(join(data, 'sync-'))
}

async function createSink(work: SyncWork, run: service.RunName): Promise<RecordSink> {
  const most = work.app.config.vulnerabilityMaxRecords
  let stored = [...(await countRecords(work.app.db)).values()].reduce((sum, one) => sum + one, 0)
  return {
    async put(given, onRefused) {
      const counts = await putSome(given, 'records', {
        onRefused,
        idOf: ({ id }) => id,
        put: (some) => service.putRecords(work, run, some),
      })
      stored += counts.created
      if (counts.created > 0 && stored > most) throw new WrongRecord(tooMany(most))
      return counts
    },
    putRanks: (given, onRefused) =>
      putSome(given, 'ranks', { onRefused, idOf: ({ cve }) => cve, put: (some) => service.putRanks(work, run, some) }),
    finish: (end) => withWrongRecord(() => service.finishSource(work, run, end)),
  }
}

const tooMany = (most: number): string =>
  `more than ${most} records would be stored, the limit of PINFOLD_VULNERABILITY_MAX_RECORDS`

type Putting<T> = {
  onRefused: (one: Refused) => void
  idOf: (one: T) => string
  put: (some: readonly T[]) => Promise<PutCounts>
}

/** Sends records. If the server refuses some of them, sends the other ones again. */
async function putSome<T>(
  given: readonly T[],
  member: string,
  { onRefused, idOf, put }: Putting<T>,
): Promise<PutCounts> {
  let left = given
  while (left.length > 0) {
    try {
      return await put(left)
    } catch (error) {
      const wrong = violationsOf(error).flatMap(({ field, description }) => {
        const [, position, rest = ''] = new RegExp(`^${member}\\[(\\d+)\\](?:\\.(.*))?$`).exec(field) ?? []
        return position === undefined ? [] : [{ index: Number(position), field: rest, problem: description }]
      })
      if (wrong.length === 0) throw toWrongRecord(error)
      for (const { index, field, problem } of wrong) onRefused({ at: idOf(left[index]!), field, problem })
      const bad = new Set(wrong.map(({ index }) => index))
      left = left.filter((_, index) => !bad.has(index))
    }
  }
  return { created: 0, updated: 0, unchanged: 0 }
}

async function withWrongRecord<T>(put: () => Promise<T>): Promise<T> {
  try {
    return await put()
  } catch (error) {
    throw toWrongRecord(error)
  }
}

/** If the whole request is refused, this run fails. For example, another run of the source has begun. */
const toWrongRecord = (error: unknown): unknown =>
  violationsOf(error).length > 0 ? new WrongRecord((error as AppError).message) : error

function violationsOf(error: unknown): readonly { field: string; description: string }[] {
  if (!(error instanceof AppError)) return []
  return error.details.flatMap((detail) => (detail.type === 'BadRequest' ? detail.fieldViolations : []))
}
