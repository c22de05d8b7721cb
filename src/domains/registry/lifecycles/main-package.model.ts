// Main package of an image, and its release line.

/** Upstream version of a distribution package: `22.4.1` for `1:22.4.1-r0`, `3.11.2` for `3.11.2-6+deb12u1`. */
export function upstreamVersion(version: string): string {
  return /^(?:\d+:)?v?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? ''
}

/** Compares two upstream versions number by number. */
export function compareNumbers(one: string, other: string): number {
  const [a, b] = [one, other].map((version) => upstreamVersion(version).split('.').map(Number))
  for (let i = 0; i < Math.max(a!.length, b!.length); i++) {
    const difference = (a![i] ?? -1) - (b![i] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}

/** Relevant fields of a package that is installed in an image. */
export type Installed = { name: string; version: string; origin: string; originVersion: string }

/** `name` is empty if the main package is unknown. `version` is empty if the package was not found in the image. */
export type MainPackage = { name: string; version: string }

/** Versions in a name, as in `nodejs-22` or `python3.12`. */
const versions = /-?\d+(?:\.\d+)*/g
/** A second release line in the name, as in `tomcat-11.0-openjdk`. Then neither line alone determines the end of life. */
const versionInside = /-\d+(?:\.\d+)*-[a-z]/

/** Names for looking up a package, the best first. Empty for a package with two release lines. */
export function lookupNames(name: string): string[] {
  const lower = name.toLowerCase()
  if (lower === '' || versionInside.test(lower)) return []
  const version = lower.match(versions)?.at(-1)
  if (version === undefined || version === lower || !lower.endsWith(version)) return [lower]
  return [lower, lower.slice(0, -version.length)]
}

/**
 * Finds the installed package that best matches these names, by its own name or as the source package of other packages. Earlier
 * names take precedence, and then later versions.
 */
export function findInstalled(names: readonly string[], installed: readonly Installed[]): MainPackage | undefined {
  const rank = new Map(names.map((name, i) => [name, i]))
  let best: { rank: number; found: MainPackage } | undefined
  const consider = (name: string, version: string, later: number): void => {
    const lookups = lookupNames(name)
    const found = lookups.flatMap((one, i) => {
      const position = rank.get(one)
      return position === undefined ? [] : [position + later + i / 2]
    })[0]
    if (found === undefined || (best && best.rank < found)) return
    const isBetter = !best || found < best.rank || compareNumbers(version, best.found.version) > 0
    if (isBetter) best = { rank: found, found: { name, version } }
  }
  for (const one of installed) {
    consider(one.name, one.version, 0)
    if (one.origin !== one.name) consider(one.origin, one.originVersion, names.length)
  }
  return best?.found
}

/** The longest name of a release line with which the version begins, compared part by part. */
export function cycleOf(version: string, cycles: ReadonlySet<string>): string {
  const parts = upstreamVersion(version).split('.')
  for (let length = parts.length; length > 0; length--) {
    const cycle = parts.slice(0, length).join('.')
    if (cycles.has(cycle)) return cycle
  }
  return ''
}
