// Packages of the demo images at a time. The names and versions are those of Alpine 3.20, and the dates are invented.

/** Package of an image. `origin` is the source package if its name differs. */
export type DemoPackage = { name: string; version: string; origin?: string }

/** Versions of a source package. Each was current until the given number of days ago; the last one still is. */
type Versions = readonly (readonly [untilDaysAgo: number, version: string])[]

const versions: Readonly<Record<string, Versions>> = {
  'apk-tools': [[0, '2.14.4-r0']],
  busybox: [
    [50, '1.36.1-r28'],
    [0, '1.36.1-r29'],
  ],
  'ca-certificates': [[0, '20240705-r0']],
  curl: [
    [62, '8.7.1-r0'],
    [31, '8.9.0-r0'],
    [0, '8.9.1-r0'],
  ],
  expat: [
    [25, '2.6.2-r0'],
    [0, '2.6.3-r0'],
  ],
  git: [[0, '2.45.2-r0']],
  go: [
    [16, '1.22.5-r0'],
    [0, '1.22.7-r0'],
  ],
  krb5: [
    [42, '1.20.2-r0'],
    [0, '1.20.2-r1'],
  ],
  libxml2: [[0, '2.12.7-r0']],
  musl: [
    [20, '1.2.5-r0'],
    [0, '1.2.5-r1'],
  ],
  nghttp2: [
    [76, '1.56.0-r0'],
    [0, '1.62.1-r0'],
  ],
  nginx: [
    [33, '1.26.1-r0'],
    [0, '1.26.2-r0'],
  ],
  nodejs: [
    [45, '20.15.0-r1'],
    [0, '20.15.1-r0'],
  ],
  openjdk21: [
    [9, '21.0.4_p7-r0'],
    [0, '21.0.5_p11-r0'],
  ],
  openssl: [
    [70, '3.3.0-r2'],
    [0, '3.3.1-r3'],
  ],
  pcre2: [[0, '10.43-r0']],
  php83: [[0, '8.3.10-r0']],
  python3: [
    [35, '3.12.3-r1'],
    [0, '3.12.6-r0'],
  ],
  ruby: [[0, '3.3.3-r1']],
  xz: [
    [80, '5.6.1-r0'],
    [0, '5.6.2-r0'],
  ],
  zlib: [[0, '1.3.1-r1']],
}

/** Binary packages by source package, where the names differ. */
const binaries: Readonly<Record<string, readonly string[]>> = {
  expat: ['libexpat'],
  krb5: ['krb5-libs'],
  nghttp2: ['nghttp2-libs'],
  openssl: ['libcrypto3', 'libssl3'],
  php83: ['php83', 'php83-openssl'],
  xz: ['xz-libs'],
  curl: ['libcurl'],
}

/** Packages of every image. */
const base = ['apk-tools', 'busybox', 'ca-certificates', 'musl', 'openssl', 'zlib']

/** Packages of an image with this age. It has its own source packages and those of every image. */
export function packagesAt(own: readonly string[], daysAgo: number): DemoPackage[] {
  return [...new Set([...base, ...own])].sort().flatMap((source) => {
    const version = versionAt(source, daysAgo)
    return (binaries[source] ?? [source]).map((name) => ({ name, version, ...(name !== source && { origin: source }) }))
  })
}

/** Version of a source package at this age. */
export function versionAt(source: string, daysAgo: number): string {
  const found = versions[source]?.find(([until]) => daysAgo >= until)
  if (!found) throw new Error(`the demo has no versions of ${source}`)
  return found[1]
}
