// Stored text of a package list.
import type { Package } from '#contents/packages.ts'

/** A stored package. Unknown columns at the end of the row are left out. */
type PackageRow = [
  kind: Package['kind'],
  name: string,
  version: string,
  origin: string,
  originVersion: string,
  arch: string,
  locations?: string[],
  ownerName?: string,
  ownerVersion?: string,
  module?: string,
]

export function packagesText(packages: readonly Package[]): string {
  return JSON.stringify(
    packages.map((one) => [
      ...[one.kind, one.name, one.version, one.origin, one.originVersion, one.arch],
      ...(one.locations || one.owner || one.module ? [one.locations ?? []] : []),
      ...(one.owner || one.module ? [one.owner?.name ?? '', one.owner?.version ?? ''] : []),
      ...(one.module ? [one.module] : []),
    ]),
  )
}

/** Packages in the text of a stored package list. */
export function packagesIn(text: string): Package[] {
  return (JSON.parse(text) as PackageRow[]).map(
    ([kind, name, version, origin, originVersion, arch, locations, ownerName = '', ownerVersion = '', module]) => ({
      ...{ kind, name, version, origin, originVersion, arch },
      ...(module === undefined ? {} : { module }),
      ...(locations && locations.length > 0 ? { locations } : {}),
      ...(ownerName === '' ? {} : { owner: { name: ownerName, version: ownerVersion } }),
    }),
  )
}
