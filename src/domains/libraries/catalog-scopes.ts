// Lists that contain a library: the list of its ecosystem, and a list for each filter that matches the library.
import { localLabel } from '#versions/pep440.ts'
import type { Ecosystem, VersionFacts } from './artifacts.model.ts'

/** Filters for libraries of an ecosystem. A missing filter matches all libraries. */
export type Pick = { cuda?: string; remediated?: boolean }

export function catalogScopeOf(ecosystem: Ecosystem, { cuda, remediated }: Pick): string {
  return [ecosystem, ...(remediated ? ['remediated'] : []), ...(cuda ? ['cuda', cuda] : [])].join(' ')
}

/** All lists that contain the library because of one of its versions, sorted by name. */
export function catalogScopesOf(ecosystem: Ecosystem, name: string, versions: Iterable<VersionFacts>): string[] {
  const ofName = ecosystem === 'python' ? cudaOfLabel(/-(cu\d+)$/.exec(name)?.[1] ?? '') : []
  const scopes = new Set([catalogScopeOf(ecosystem, {})])
  for (const { version, remediated } of versions) {
    const cudas = [...ofName, ...(ecosystem === 'python' ? cudaOfVersion(version) : [])]
    if (remediated) scopes.add(catalogScopeOf(ecosystem, { remediated }))
    for (const cuda of cudas) {
      scopes.add(catalogScopeOf(ecosystem, { cuda }))
      if (remediated) scopes.add(catalogScopeOf(ecosystem, { cuda, remediated }))
    }
  }
  return [...scopes].sort()
}

/** CUDA version in a request: `12` or `12.1`, also written `cu12` or `cu121`. Returns undefined for an invalid version. */
export function readCuda(text: string): string | undefined {
  const plain = /^(\d{1,2}(?:\.\d{1,2})?)$/.exec(text)?.[1]
  return plain ?? cudaOfLabel(text.toLowerCase()).at(-1)
}

/** Builds for CUDA name the CUDA version in the local label of their version: 2.1.0+cu121. */
function cudaOfVersion(version: string): string[] {
  return localLabel(version)
    .split(/[-_.]/)
    .flatMap((segment) => cudaOfLabel(segment))
}

/**
 * CUDA versions of a label. `cu121` means CUDA 12.1, and matches 12 too. `cu12` matches only 12. `cu92` means CUDA 9.2, from the
 * time of one-digit versions.
 */
function cudaOfLabel(label: string): string[] {
  const digits = /^cu(\d{2,3})$/.exec(label)?.[1]
  if (digits === undefined) return []
  if (digits.length === 2 && digits < '40') return [digits]
  const major = digits.slice(0, -1)
  return [major, `${major}.${digits.at(-1)}`]
}
