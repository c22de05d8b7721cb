// Blob store in a bucket. Each upload chooses its final key at the start, so no object is copied later.
import { randomBytes } from 'node:crypto'
import { Newest } from '#lib/caches/newest.ts'
import { createMemory } from '#lib/scheduling/memory.ts'
import type { Blobs } from '../blobs.ts'
import { ContentMissing, StoreUnavailable } from '../blobs.ts'
import type { Observe } from '../operations.ts'
import type { Bucket } from './bucket.ts'
import { s3Checkpoints } from './checkpoints.ts'
import { createClient, Refused } from './client.ts'
import { createCredentials, type Environment } from './credentials.ts'
import { readObject } from './read.ts'
import { abortUploads, listObjects, removeObjects } from './sweep.ts'
import { createUpload, sizeOf } from './upload.ts'

/** Key of the object with the ID of the blob store. */
export const idObject = 'pinfold-id'
/** Prefix of the keys of all contents that this store writes. */
const contents = 'c/'
/** Prefixes of the keys of all contents. The last three are for contents that were copied from a blob folder. */
const folders = [contents, 'sha256/', 'sha512/', 'uploads/']
/** Most contents that the cache remembers as present or missing. */
const mostKnown = 10_000
/** Times in milliseconds for which the cache remembers a content as missing or as present. */
const missingMs = 60_000
const thereMs = 300_000
const memoryWaitMs = 60_000
const minuteMs = 60_000
/**
 * Validity of a signed URL in seconds, from the minute in which it was created. A client whose access is revoked can use the URL
 * until then.
 */
const addressSeconds = 300

export type S3Options = {
  env: Environment
  observe?: Observe | undefined
  memoryBytes?: number
  /** Longest check, in milliseconds, of whether the content exists before a client is redirected to the bucket. */
  lookMs?: number
  /** Milliseconds of a clock that is never adjusted. */
  monotonic?: () => number
}

/** Opens a bucket. Throws with the reason if the bucket cannot be read. */
export async function openBucket(
  bucket: Bucket,
  { env, observe, memoryBytes = 256 << 20, lookMs = 2000, monotonic = () => performance.now() }: S3Options,
): Promise<Blobs> {
  const client = createClient(bucket, createCredentials(env, bucket.region), { observe, monotonic })
  const memory = createMemory(memoryBytes, {
    waitMs: memoryWaitMs,
    crowded: 'too many uploads to the bucket are in progress',
    refusal: (why) => new StoreUnavailable(why, { reason: 'TOO_BUSY' }),
  })
  const known = createPresence(monotonic)
  const readId = async (): Promise<string | undefined> => {
    const ask = { operation: 'GetObject', method: 'GET', key: idObject } as const
    return (await client.ask(ask).catch(unless(404)))?.text.trim()
  }
  try {
    await readId()
  } catch (error) {
    client.close()
    throw error
  }
  return {
    async begin(expected, owner) {
      const name = randomBytes(16).toString('hex')
      return createUpload(client, memory, `${contents}${name.slice(0, 2)}/${name}`, expected, owner)
    },
    beginAt: async (location, expected) => createUpload(client, memory, location, expected, ''),
    async hold() {},
    keep: async (part) => part,
    async read(blob, reading) {
      try {
        return await readObject(client, blob, reading)
      } catch (error) {
        if (error instanceof ContentMissing) known.missing(blob.location)
        throw error
      }
    },
    async has({ location, size }, asFarAsKnown = false) {
      // Cached results that may be outdated are checked again, since missing content may have been restored.
      const was = known.of(location)
      if (was === 'missing' || (asFarAsKnown && was !== 'was missing')) return was !== 'missing'
      const isThere = (await sizeOf(client, location)) === size
      known[isThere ? 'there' : 'missing'](location)
      return isThere
    },
    async remove(location) {
      await client.ask({ operation: 'DeleteObject', method: 'DELETE', key: location }).catch(unless(404))
    },
    removeAll: (locations) => removeObjects(client, locations),
    readId,
    async keepId(id) {
      const body = [Buffer.from(`${id}\n`)]
      const headers = { 'if-none-match': '*' }
      await client.ask({ operation: 'PutObject', method: 'PUT', key: idObject, headers, body }).catch(unless(412))
      return (await readId())!
    },
    async *list(hourOfWeek) {
      const shards = hourOfWeek === undefined ? [''] : shardsOf(hourOfWeek)
      for (const folder of folders) for (const shard of shards) yield* listObjects(client, folder + shard)
    },
    async abortUploads(before) {
      for (const folder of folders) await abortUploads(client, bucket.prefix + folder, before)
    },
    async clock() {
      await readId()
      return client.clock()
    },
    async addressOf({ location, size }) {
      // If the content is missing, or the URL has expired, only the client would notice. So the bucket is checked first, which
      // also updates the clock of the store.
      const was = known.of(location)
      if (was === undefined || was === 'was missing' || !client.isClockReliable()) {
        const signal = AbortSignal.timeout(lookMs)
        // If this server cannot reach the bucket, the client is redirected anyway, since it may be able to.
        const found = await sizeOf(client, location, signal).catch(() => 'away' as const)
        if (found !== 'away') known[found === size ? 'there' : 'missing'](location)
      }
      if (known.of(location) === 'missing') return undefined
      // All servers create the same URL within a minute, so that caches can reuse the response.
      const minute = new Date(Math.floor(client.clock() / minuteMs) * minuteMs)
      return client.addressOf(location, minute, addressSeconds)
    },
    checkpoints: s3Checkpoints(client, idObject),
    isUp: client.isUp,
    close: client.close,
  }
}

/** Cache of which contents exist in the bucket. If content was missing and the entry has expired, the result is `was missing`. */
function createPresence(monotonic: () => number) {
  const states = new Newest<string, { isThere: boolean; until: number }>(mostKnown)
  const note = (location: string, isThere: boolean, forMs: number): void => {
    states.set(location, { isThere, until: monotonic() + forMs })
  }
  return {
    there: (location: string) => note(location, true, thereMs),
    missing: (location: string) => note(location, false, missingMs),
    of(location: string): 'there' | 'missing' | 'was missing' | undefined {
      const state = states.get(location)
      if (!state) return undefined
      if (state.until > monotonic()) return state.isThere ? 'there' : 'missing'
      return state.isThere ? undefined : 'was missing'
    },
  }
}

/** Beginnings of content names that are listed in this hour of the week. In 168 hours, all names are listed. */
function shardsOf(hourOfWeek: number): string[] {
  const all = Array.from({ length: 256 }, (_, shard) => shard)
  return all.filter((shard) => shard % 168 === hourOfWeek).map((shard) => shard.toString(16).padStart(2, '0'))
}

const unless =
  (status: number) =>
  (error: unknown): undefined => {
    if (error instanceof Refused && error.status === status) return undefined
    throw error
  }
