// Packages of the distribution that own files of languages. The distribution's advisories then apply to such a file.
import type { DistributionKind, Owner, Package } from '../packages.ts'

/** Stores owners only for the given paths, of which there are few; databases list every file. */
export class Owners {
  readonly #wanted: Set<string>
  readonly #owners = new Map<string, { kind: DistributionKind; name: string } | undefined>()

  constructor(paths: readonly string[]) {
    this.#wanted = new Set(paths.map(merged))
  }

  add(path: string, kind: DistributionKind, name: string): void {
    const one = merged(path)
    if (!this.#wanted.has(one)) return
    const before = this.#owners.get(one)
    // A file that two packages claim has no owner, so that the advisories of neither apply to it.
    const isSame = !this.#owners.has(one) || (before?.kind === kind && before.name === name)
    this.#owners.set(one, isSame ? { kind, name } : undefined)
  }

  /** The owner of a path, if it is installed, and in one version only. */
  among(packages: readonly Package[]): (path: string) => Owner | undefined {
    const versions = new Map<string, Set<string>>()
    for (const { kind, name, version } of packages) {
      const key = `${kind} ${name}`
      versions.set(key, (versions.get(key) ?? new Set()).add(version))
    }
    return (path) => {
      const { kind, name } = this.#owners.get(merged(path)) ?? {}
      const [version, another] = [...(versions.get(`${kind} ${name}`) ?? [])]
      return name === undefined || version === undefined || another !== undefined ? undefined : { name, version }
    }
  }
}

/** Distributions that have merged /lib and similar folders into /usr list files under either path. */
function merged(path: string): string {
  return path.replace(/^usr\/(?=(?:s?bin|lib(?:32|64|x32)?)\/)/, '')
}
