import type { Manifest } from './manifests.model.ts'

/**
 * Content of manifests that were read lately. A digest stands for one content, so only whether the repo still has it can
 * be out of date: for half a second, and not at all on the server that deletes it.
 */
export type ManifestCache = {
  /** With `isThere` the caller knows from elsewhere that the repo has it. */
  get(repo: number, digest: string, isThere: boolean): Manifest | undefined
  set(repo: number, manifest: Manifest): void
  /** Forgets everything. */
  clear(): void
  /** What a reader that started before a `clear` found must not be kept. */
  epoch(): number
}

const maxAgeMs = 500
const maxBytes = 64 * 1024 * 1024

/** `monotonic` gives milliseconds of a clock that never steps. */
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
      // The oldest go first.
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
