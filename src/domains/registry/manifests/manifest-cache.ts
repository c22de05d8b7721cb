import type { Manifest } from './manifests.model.ts'

/**
 * Cache of recently read manifests. The content of a digest never changes. Only the presence of a manifest in the repository can
 * be outdated, for half a second. On the server that deletes the manifest it is never outdated.
 */
export type ManifestCache = {
  /** `isThere` is true if the caller already knows that the repository has the manifest. */
  get(repo: number, digest: string, isThere: boolean): Manifest | undefined
  set(repo: number, manifest: Manifest): void
  /** Removes all entries. */
  clear(): void
  /** Number that changes with each `clear`. A result that was read before a `clear` must not be stored. */
  epoch(): number
}

const maxAgeMs = 500
const maxBytes = 64 * 1024 * 1024

/** Creates a cache. `monotonic` returns milliseconds of a clock that never jumps. */
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
