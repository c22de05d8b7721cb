// Distribution packages that own package files of languages. Advisories of the distribution apply to such a file.
import type { DistributionKind, Owner, Package } from '../packages.ts'

/** Stores owners only for the given paths. A package database lists all files, but few of them are package files of languages. */
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
    // If two packages claim a file, it has no owner, so advisories of neither package apply to the file.
    const isSame = !this.#owners.has(one) || (before?.kind === kind && before.name === name)
    this.#owners.set(one, isSame ? { kind, name } : undefined)
  }

  /** Returns a function that finds the owner of a path. The owner must be installed in exactly one version. */
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

/**
 * Path without `usr/` before merged folders. Many distributions have merged /lib and similar folders into /usr, and databases
 * list files under either path.
 */
function merged(path: string): string {
  return path.replace(/^usr\/(?=(?:s?bin|lib(?:32|64|x32)?)\/)/, '')
}
