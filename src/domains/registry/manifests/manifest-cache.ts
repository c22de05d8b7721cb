import type { Manifest } from './manifests.model.ts'

/**
 * Content of recently read manifests. Content never changes, so only its presence in the repository can be outdated: for half a
 * second, and never on the server that deletes it.
 */
export type ManifestCache = {
  /** With `isThere` the caller already knows that the repository has the manifest. */
  get(repo: number, digest: string, isThere: boolean): Manifest | undefined
  set(repo: number, manifest: Manifest): void
  /** Removes all entries. */
  clear(): void
  /** Number that changes with each `clear`. A result that was read before it must not be stored. */
  epoch(): number
}

const maxAgeMs = 500
const maxBytes = 64 * 1024 * 1024

/** `monotonic` returns milliseconds of a clock that never steps. */
export function createManifestCache(monotonic: () => number): ManifestCache {
  const entries = new Map<string, { manifest: Manifest; at: number }>()
  let bytes = 0
  let epoch = 0
  const keyOf = (repo: number, digest: string) => `${repo} ${digest}`
  const drop = (key: string): void => {
    bytes -= entries.get(key)?.manifest.content.length ?? 0
    entries.delete(key)
  }
  return {
    get(repo, digest, isThere) {
      const entry = entries.get(keyOf(repo, digest))
      if (!entry || (!isThere && monotonic() - entry.at >= maxAgeMs)) return undefined
      return entry.manifest
    },
    set(repo, manifest) {
      const key = keyOf(repo, manifest.digest)
      drop(key)
      entries.set(key, { manifest, at: monotonic() })
      bytes += manifest.content.length
      // The oldest entries are removed first.
      for (const oldest of entries.keys()) {
        if (bytes <= maxBytes) break
        drop(oldest)
      }
    },
    clear() {
      epoch++
      entries.clear()
      bytes = 0
    },
    epoch: () => epoch,
  }
}
