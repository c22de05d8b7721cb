// Cache of the keys of outside issuers, read by OpenID Connect Discovery. Behavior of `keysOf`:
//
// - Without keys, or with keys of 24 h and more: fetches and waits. Refuses for 10 s after a failed fetch.
// - With keys, for a cached kid or without a kid: serves them. Keys of 5 min and more are refreshed in the background, but not
//   within 30 s after a failed fetch.
// - With keys, for an unknown kid: fetches and waits, but at most once in 30 s. In between, and if the fetch fails, serves the
//   cached keys.
//
// One fetch per issuer runs at a time, and all callers wait for it. The age of keys counts from its start. At most 1,000 issuers
// are cached. Issuers without keys are dropped first, then the least recently used one.
import type { JSONWebKeySet } from 'jose'
import { type KeySet, readKeySet } from '#lib/crypto/key-set.ts'
import { type AppError, unauthenticated } from '#lib/errors.ts'
import type { Outgoing } from '#lib/net/outgoing.ts'

const seconds = 1000
const freshFor = 5 * 60 * seconds
const servedFor = 24 * 60 * 60 * seconds
const retryAfter = 30 * seconds
const refusedFor = 10 * seconds
const unknownKidEvery = 30 * seconds
const maxIssuers = 1000
const maxIssuerLength = 1024

export type OutsideIssuers = {
  /**
   * Public keys of the issuer. Returns the same object until the keys are fetched again. Throws UNAUTHENTICATED if no keys are
   * available.
   */
  keysOf(issuer: string, kid: string | undefined): Promise<JSONWebKeySet>
  /** Cached keys that `keysOf` would return now without a request. Undefined if there are none. */
  held(issuer: string): JSONWebKeySet | undefined
}

type Entry = {
  issuer: string
  keys?: { set: KeySet; time: number }
  failure?: { cause: unknown; time: number }
  unknownKidTime?: number
  /** The fetch in progress. The promise never rejects: the result is stored in the entry. */
  running?: Promise<void>
}

/** Creates the cache. `now` returns milliseconds since 1970. */
export function createOutsideIssuers(outgoing: Pick<Outgoing, 'getJson'>, now: () => number): OutsideIssuers {
  const entries = new Map<string, Entry>()
  /**
   * True if `time` is less than `span` milliseconds ago. False for a time in the future: the clock was set back since, so the age
   * is unknown.
   */
  const isWithin = (time: number | undefined, span: number): boolean => {
    const age = time === undefined ? Number.NaN : now() - time
    return age >= 0 && age < span
  }
  const isServed = ({ keys }: Entry) => isWithin(keys?.time, servedFor)
  const isHeld = ({ keys }: Entry, kid: string) => keys?.set.keys.some((key) => key.kid === kid)

  const entryOf = (issuer: string): Entry => {
    const entry = entries.get(issuer) ?? { issuer }
    if (!entries.delete(issuer) && entries.size >= maxIssuers) entries.delete(leastOf(entries))
    entries.set(issuer, entry)
    return entry
  }

  const fetch = (entry: Entry): Promise<void> => {
    entry.running ??= run(entry)
    return entry.running
  }

  const run = async (entry: Entry): Promise<void> => {
    const time = now()
    try {
      entry.keys = { set: await fetchKeys(outgoing, entry.issuer), time }
      delete entry.failure
    } catch (cause) {
      entry.failure = { cause, time: now() }
    } finally {
      delete entry.running
    }
  }

  const fetchFirst = async (entry: Entry): Promise<void> => {
    if (!entry.running && isWithin(entry.failure?.time, refusedFor)) throw refusal(entry.failure?.cause)
    await fetch(entry)
    if (!isServed(entry)) throw refusal(entry.failure?.cause)
  }

  const fetchForKid = async (entry: Entry, kid: string): Promise<void> => {
    // The fetch that was in progress may have read the keys before the issuer added this one. So another fetch follows.
    await entry.running
    if (isHeld(entry, kid)) return
    if (!isWithin(entry.unknownKidTime, unknownKidEvery)) {
      entry.unknownKidTime = now()
      void fetch(entry)
    }
    await entry.running
  }

  return {
    async keysOf(issuer, kid) {
      if (!isIssuer(issuer)) throw refusal(new Error('the issuer is not a valid URL'))
      const entry = entryOf(issuer)
      let fetched = false
      if (!isServed(entry)) {
        fetched = entry.running === undefined
        await fetchFirst(entry)
      }
      if (kid !== undefined && !fetched && !isHeld(entry, kid)) await fetchForKid(entry, kid)
      else if (!isWithin(entry.keys?.time, freshFor) && !isWithin(entry.failure?.time, retryAfter)) void fetch(entry)
      return entry.keys!.set
    },
    held(issuer) {
      const entry = entries.get(issuer)
      return entry && isServed(entry) ? entry.keys?.set : undefined
    },
  }
}

/**
 * Error for an issuer whose keys cannot be fetched. It is the same as for a wrong signature, so that callers cannot find out
 * which addresses the server can reach.
 */
function refusal(cause: unknown): AppError {
  return unauthenticated('the token is not accepted; check its issuer, audience, signature and expiry', cause)
}

/**
 * True for an http or https URL with a host and a path as in RFC 3986. The URL has no query, since the path of the discovery
 * document is appended to it.
 */
function isIssuer(text: string): boolean {
  return text.length <= maxIssuerLength && /^https?:\/\/[\w.:[\]-]+(?:\/[\w!$%&'()*+,./:;=@~-]*)?$/.test(text)
}

/** Fetches the keys of an issuer by OpenID Connect Discovery 1.0, sections 4.1 and 4.3. */
async function fetchKeys(outgoing: Pick<Outgoing, 'getJson'>, issuer: string): Promise<KeySet> {
  const document = await outgoing.getJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const metadata = (document ?? {}) as { issuer?: unknown; jwks_uri?: unknown }
  if (metadata.issuer !== issuer) throw new Error('the discovery document names another issuer')
  if (typeof metadata.jwks_uri !== 'string') throw new Error('the discovery document has no jwks_uri')
  const set = readKeySet(await outgoing.getJson(metadata.jwks_uri))
  if (!set) throw new Error('the keys are not a valid JWK Set')
  return set
}

function leastOf(entries: Map<string, Entry>): string {
  for (const { issuer, keys, running } of entries.values()) if (!keys && !running) return issuer
  return entries.keys().next().value!
}
