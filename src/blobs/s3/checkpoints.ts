// Checkpoints in a bucket, as objects `pinfold-checkpoints/<name>`. Writes are conditional, and the version of a text is the
// ETag.
import { type CheckpointStore, checkpointFolder, type StoredCheckpoint, StoreUnavailable } from '../blobs.ts'
import { type Ask, type Client, Refused } from './client.ts'
import { listObjects } from './sweep.ts'

const keyOf = (name: string): string => `${checkpointFolder}/${name}`
const isCheckpoint = (key: string): boolean => /^pinfold-checkpoints\/[a-z\d-]+$/.test(key)
/** ETag that no object has. */
const noVersion = '"00000000000000000000000000000000"'
/** Number of immediate retries. Callers retry later on their own. */
const retries = 1

/** Checkpoints of a bucket. `idObject` is an existing object, with which the support for conditional writes is tested. */
export function s3Checkpoints(client: Client, idObject: string): CheckpointStore {
  let obeys: boolean | undefined

  const read = async (key: string, signal?: AbortSignal): Promise<StoredCheckpoint | undefined> => {
    try {
      const { headers, text } = await client.ask({ operation: 'GetObject', method: 'GET', key, signal, retries })
      return { text, version: String(headers.etag) }
    } catch (error) {
      if (error instanceof Refused && error.status === 404) return undefined
      throw error
    }
  }
  /**
   * Tests if the bucket supports conditional writes. Replaces the ID of the store by itself under two conditions that are not
   * met. If a write succeeds, the bucket ignores conditions.
   */
  const probe = async (signal?: AbortSignal): Promise<boolean> => {
    if (obeys !== undefined) return obeys
    const id = await read(idObject, signal)
    if (!id) return true
    for (const headers of [{ 'if-none-match': '*' }, { 'if-match': noVersion }]) {
      const isRefused = await put(client, { key: idObject, text: id.text, headers, signal }).then(
        () => false,
        (error: unknown) => {
          if (isConflict(error)) return true
          if (isUnknown(error)) return false
          throw error
        },
      )
      if (!isRefused) {
        obeys = false
        return false
      }
    }
    obeys = true
    return true
  }

  return {
    isAtomic: () => obeys !== false,
    read: (name, signal) => read(keyOf(name), signal),

    async write(name, text, expected, signal) {
      const key = keyOf(name)
      const condition = expected === undefined ? { 'if-none-match': '*' } : { 'if-match': expected }
      const isConditional = await probe(signal)
      if (!isConditional && (await read(key, signal))?.version !== expected) return undefined
      try {
        const headers = isConditional ? condition : {}
        const { headers: answer } = await put(client, { key, text, headers, signal })
        return answer.etag === undefined ? (await read(key, signal))?.version : String(answer.etag)
      } catch (error) {
        if (isConflict(error)) return undefined
        throw error
      }
    },

    async *list() {
      for await (const { location } of listObjects(client, keyOf(''), isCheckpoint)) {
        yield location.slice(keyOf('').length)
      }
    },
  }
}

type Put = { key: string; text: string; headers: Record<string, string>; signal: AbortSignal | undefined }

const put = (client: Client, { key, text, headers, signal }: Put) =>
  client.ask({
    operation: 'PutObject',
    method: 'PUT',
    key,
    headers,
    body: [Buffer.from(text)],
    signal,
    retries,
  } satisfies Ask)

/** True if a condition was not met. Status 404 means that If-Match was sent for a missing object. */
function isConflict(error: unknown): boolean {
  return error instanceof Refused && [404, 409, 412].includes(error.status)
}

/** True if the bucket answered a conditional write with HTTP 501: it does not support such writes. */
function isUnknown(error: unknown): boolean {
  return error instanceof StoreUnavailable && error.cause instanceof Refused && error.cause.status === 501
}
