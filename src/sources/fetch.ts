// Reads a data source from its address or a mirror. The records are a stream, and only a few of them are in memory.
import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import type { Rank, SourceRecord } from '#domains/scanning/records/records.model.ts'
import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { readTrackerPackage } from './debian-tracker.ts'
import type { Source } from './definitions.ts'
import { membersOf } from './json-members.ts'
import { readOsv } from './osv.ts'
import { readEpss, readKev } from './ranks.ts'
import { readSecdb } from './secdb.ts'
import { WrongRecord } from './values.ts'

/** A record or exploitation data. If it is invalid, its position and the problem. */
export type Read = { record: SourceRecord } | { rank: Rank } | { at: string; problem: string }

export type Fetched = {
  /** Records of the source. Empty if the source has not changed since the last fetch. */
  records: AsyncIterable<Read>
  /**
   * Returns the fingerprint for the next fetch, and the build time of the source in ISO 8601. The build time is empty if unknown.
   * Call this after the last record.
   */
  end(): { fingerprint: string; buildTime: string }
  /** True if `records` are all records of the source. */
  complete: boolean
}

export type FetchOptions = {
  outgoing: Outgoing
  /** Empty folder for downloads. */
  folder: string
  /** Fingerprint of the last fetch. If it is empty, all records are read. */
  fingerprint: string
  /** Build time of the last fetch. */
  buildTime: string
  /** Limit on the bytes of the download. By default, it is that of `Outgoing.download`. */
  maxBytes?: number
  /** Aborts the download. */
  signal?: AbortSignal
}

/** Limit on the changed records that are read one by one. If more records have changed, the whole database is read again. */
const maxSingle = 250
const maxRecordBytes = 16 * 1024 * 1024
const maxSecdbBytes = 64 * 1024 * 1024
const maxKevBytes = 64 * 1024 * 1024
const maxEpssBytes = 512 * 1024 * 1024
const recordLimits = { timeoutMs: 30_000, maxBytes: maxRecordBytes }

/** Fetches a data source. Throws OutgoingError or WrongRecord. Iterating over its records can throw the same errors. */
export async function fetchSource(source: Source, options: FetchOptions): Promise<Fetched> {
  if (source.kind === 'osv') return fetchOsv(source, options)
  const file = join(options.folder, 'source.json')
  const found = await download(options, source.url, file, options.fingerprint)
  if (!found) return createUnchanged(options)
  const readers = { secdb: secdbRecords, debian: trackerRecords, kev: kevRanks, epss: epssRanks }
  const records = readers[source.kind](file, source)
  return { records, end: () => ({ fingerprint: found.etag, buildTime: found.buildTime }), complete: true }
}

function createUnchanged({ fingerprint, buildTime }: FetchOptions): Fetched {
  return { records: emptyReads(), end: () => ({ fingerprint, buildTime }), complete: false }
}

async function download({ outgoing, signal, maxBytes }: FetchOptions, url: string, file: string, etag: string) {
  const write = (chunks: AsyncIterable<Uint8Array>) => pipeline(chunks, createWriteStream(file, { mode: 0o600 }))
  const found = await outgoing.download(url, etag, write, { ...(signal && { signal }), ...(maxBytes && { maxBytes }) })
  if (!found) return undefined
  const modified = Date.parse(found.lastModified)
  const buildTime = Number.isNaN(modified) ? '' : new Date(modified).toISOString()
  return { etag: found.etag.length <= 256 ? found.etag : '', buildTime }
}

async function* emptyReads(): AsyncGenerator<Read> {}

async function* secdbRecords(file: string, { ecosystems: [ecosystem = ''] }: Source): AsyncGenerator<Read> {
  if ((await stat(file)).size > maxSecdbBytes)
    throw new WrongRecord(`the database has more than ${maxSecdbBytes} bytes`)
  for (const record of readSecdb(await readFile(file, 'utf8'), ecosystem)) yield { record }
}

async function* kevRanks(file: string): AsyncGenerator<Read> {
  if ((await stat(file)).size > maxKevBytes) throw new WrongRecord(`the list has more than ${maxKevBytes} bytes`)
  for (const rank of readKev(await readFile(file, 'utf8'))) yield { rank }
}

/** Reads EPSS scores. The file has some ten megabytes after decompression, so it is decompressed while it is read. */
async function* epssRanks(file: string): AsyncGenerator<Read> {
  const packed = createReadStream(file)
  const unpacked = createGunzip()
  packed.on('error', (error) => unpacked.destroy(error)).pipe(unpacked)
  try {
    for await (const rank of readEpss(atMost(unpacked, maxEpssBytes))) yield { rank }
  } catch (error) {
    if (String((error as NodeJS.ErrnoException).code).startsWith('Z_'))
      throw new WrongRecord('the file cannot be decompressed')
    throw error
  } finally {
    packed.destroy()
    unpacked.destroy()
  }
}

async function* atMost(chunks: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > most) throw new WrongRecord(`the file has more than ${most} bytes after decompression`)
    yield chunk
  }
}

async function* trackerRecords(file: string): AsyncGenerator<Read> {
  for await (const [name, text] of membersOf(createReadStream(file))) {
    yield* readEach(name, () => readTrackerPackage(name, text))
  }
}

/** Reads one part of a source. An error in this part does not stop the reading of other parts. */
function* readEach(at: string, work: () => readonly SourceRecord[]): Generator<Read> {
  try {
    for (const record of work()) yield { record }
  } catch (error) {
    if (!(error instanceof WrongRecord)) throw error
    yield { at, problem: error.message }
  }
}

/**
 * Fetches a database of OSV. A separate list has the times and ids of changed records. A mirror can lack this list. If new code
 * reads records differently, the number in the fingerprint must be increased. Then an upgraded server reads all records again.
 */
async function fetchOsv(source: Source, options: FetchOptions): Promise<Fetched> {
  const list = join(options.folder, 'modified_id.csv')
  const since = /^modified2:(.+)$/.exec(options.fingerprint)?.[1] ?? ''
  const hasList = await download(options, `${source.url}modified_id.csv`, list, '').then(() => true, falseIfNotFound)
  const { ids, newest } = hasList && since !== '' ? await changedSince(list, since) : nothingKnown
  if (ids) {
    return { records: singleRecords(source, options, ids), end: () => toFetchEnd(newest), complete: false }
  }
  const etag = /^etag2:(.+)$/.exec(options.fingerprint)?.[1] ?? ''
  const file = join(options.folder, 'all.zip')
  const found = await download(options, `${source.url}all.zip`, file, hasList ? '' : etag)
  if (!found) return createUnchanged(options)
  if (hasList) return readAllAndChanged(source, options, { file, list, made: found.buildTime })
  const fingerprint = found.etag === '' ? '' : `etag2:${found.etag}`
  return { records: zipRecords(file), end: () => ({ fingerprint, buildTime: found.buildTime }), complete: true }
}

const nothingKnown = { ids: undefined, newest: '' }

function toFetchEnd(time: string): { fingerprint: string; buildTime: string } {
  return time === ''
    ? { fingerprint: '', buildTime: '' }
    : { fingerprint: `modified2:${time}`, buildTime: new Date(time).toISOString() }
}

/**
 * Yields all records of the archive, and then the records that changed after the archive was made. If too many have changed, the
 * next fetch reads them. In this case, the next fetch begins at the time of the archive, not at the time of the list.
 */
function readAllAndChanged(
  source: Source,
  options: FetchOptions,
  { file, list, made }: { file: string; list: string; made: string },
): Fetched {
  let until = ''
  const records = async function* (): AsyncGenerator<Read> {
    for await (const one of zipRecords(file)) {
      if ('record' in one && one.record.modifyTime > until) until = one.record.modifyTime
      yield one
    }
    // The time comes from a record and can be wrong, so it is at most the time of the archive.
    if (made !== '' && until > made) until = made
    const { ids, newest } = until === '' ? nothingKnown : await changedSince(list, until)
    yield* singleRecords(source, options, ids ?? [])
    if (ids) until = newest
  }
  return { records: records(), end: () => toFetchEnd(until), complete: true }
}

function falseIfNotFound(error: unknown): false {
  if (error instanceof OutgoingError && error.status === 404) return false
  throw error
}

/** IDs of the records that changed after a time. `ids` is undefined if there are too many to read one by one. */
async function changedSince(file: string, since: string): Promise<{ ids: string[] | undefined; newest: string }> {
  const ids: string[] = []
  let newest = ''
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [time = '', id = ''] = line.split(',')
    if (line.trim() === '') continue
    if (Number.isNaN(Date.parse(time)) || !/^[\w.:-]{1,128}$/.test(id))
      throw new WrongRecord('modified_id.csv has an invalid line')
    if (newest === '') newest = time
    // The list has the newest records first.
    if (Date.parse(time) <= Date.parse(since)) break
    ids.push(id)
    if (ids.length > maxSingle) break
  }
  return { ids: ids.length > maxSingle ? undefined : ids, newest: newest || since }
}

async function* singleRecords(
  { url }: Source,
  { outgoing, signal }: FetchOptions,
  ids: readonly string[],
): AsyncGenerator<Read> {
  for (const id of ids) {
    const text = await outgoing.getText(
      `${url}${encodeURIComponent(id)}.json`,
      {},
      { ...recordLimits, ...(signal && { signal }) },
    )
    yield* readEach(id, () => [readOsv(text)])
  }
}

async function* zipRecords(file: string): AsyncGenerator<Read> {
  let zip: ZipFile | undefined
  try {
    zip = await openPromise(file, { lazyEntries: true, autoClose: false })
    for await (const entry of zip.eachEntry()) {
      const name = entry.fileName
      if (!name.endsWith('.json')) continue
      if (entry.uncompressedSize > maxRecordBytes) yield { at: name, problem: `has more than ${maxRecordBytes} bytes` }
      else {
        const text = await textOf(zip, entry)
        yield* readEach(name, () => [readOsv(text)])
      }
    }
  } catch (error) {
    // An error of the file system is not about the content of the file. An error of decompression is. Neither message contains
    // any content.
    if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
    throw new WrongRecord(`all.zip cannot be read: ${(error as Error).message.slice(0, 200)}`)
  } finally {
    zip?.close()
  }
}

/** Reads the text of an entry. If the entry is longer than its declared size, the reader ends the stream. */
async function textOf(zip: ZipFile, entry: Entry): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
