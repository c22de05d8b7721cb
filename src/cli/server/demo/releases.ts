// Releases of the demo images within 90 days, and the updates of their tags. Times are relative to the start of the server.
import { type DemoImage, demoImage, demoSbom, type ImageInput } from './images.ts'
import { packagesAt, versionAt } from './packages.ts'

/** Builds of one repository. The first of `sources` names the version of the image. */
type Line = {
  sources: readonly string[]
  /** Ages of the builds in days, the oldest first. Age 0 is pushed when the demo starts. */
  days: readonly number[]
  /** Tags besides the version and `candidate`. Each follows a build after this number of days. */
  follow: Readonly<Record<string, number>>
  /** Ages in days at which the tag `stable` goes back to the build before. */
  rollbacks?: readonly number[]
  libraries?: Readonly<Record<string, string>>
  /** True if builds of the last weeks have an SBOM. */
  hasSbom?: boolean
}

const often = [88, 72, 55, 41, 30, 17, 7, 0]
const stable = { stable: 4 }
const latest = { latest: 0 }

/** Lines by `folder/repository`. */
const lines: Readonly<Record<string, Line>> = {
  'bases/static': { sources: ['ca-certificates'], days: [86, 51, 19, 0], follow: latest, hasSbom: true },
  'bases/glibc-dynamic': { sources: ['zlib'], days: [85, 50, 18, 0], follow: latest, hasSbom: true },
  'bases/alpine-base': { sources: ['busybox', 'xz'], days: [89, 71, 49, 19, 0], follow: latest, hasSbom: true },
  'edge/nginx': {
    sources: ['nginx', 'curl', 'expat', 'nghttp2', 'pcre2'],
    days: often,
    follow: stable,
    hasSbom: true,
  },
  'payments/jdk': {
    sources: ['openjdk21', 'krb5', 'expat', 'xz'],
    days: often,
    follow: stable,
    rollbacks: [23.5],
    hasSbom: true,
  },
  'payments/python': { sources: ['python3', 'expat', 'xz', 'krb5'], days: [84, 52, 34, 12, 0], follow: stable },
  'payments/php': { sources: ['php83', 'libxml2', 'curl', 'krb5'], days: [87, 64, 47], follow: stable },
  'data/python': {
    sources: ['python3', 'expat', 'libxml2'],
    days: [83, 60, 36, 13, 0],
    follow: { ...latest, stable: 6 },
    libraries: { requests: '2.31.0', jinja2: '3.1.3', numpy: '1.26.4' },
  },
  'data/ruby': { sources: ['ruby', 'libxml2'], days: [80, 46, 21], follow: latest },
  'data/git': { sources: ['git', 'curl', 'expat', 'pcre2'], days: [78, 52, 29, 5], follow: latest },
  'web/node': {
    sources: ['nodejs', 'nghttp2', 'curl'],
    days: [87, 66, 46, 31, 18, 6, 0],
    follow: stable,
    hasSbom: true,
  },
  'web/go': { sources: ['go', 'git'], days: [82, 48, 17, 2], follow: latest },
}

/** Build of an image and its age in days. `sbom` refers to it. */
export type DemoBuild = { daysAgo: number; version: string; image: DemoImage; sbom: DemoImage | undefined }
/** Update of a tag to a digest. */
export type DemoMove = { time: string; digest: string }
/** Releases of a repository. `moves` are the updates of each tag that are in the past. */
export type DemoReleases = {
  builds: readonly DemoBuild[]
  moves: ReadonlyMap<string, readonly DemoMove[]>
  /** Build that is pushed when the demo starts, with its tags. */
  newest: { build: DemoBuild; tags: readonly string[] } | undefined
}

const day = 86_400_000

/** Releases of a repository of the company. Undefined if it has none. */
export async function demoReleases(folder: string, repo: string, now: Date): Promise<DemoReleases | undefined> {
  const line = lines[`${folder}/${repo}`]
  if (!line) return undefined
  const builds = await Promise.all(line.days.map((daysAgo, i) => buildOf(repo, line, daysAgo, i + 1, now)))
  const moves = new Map<string, DemoMove[]>()
  const add = (tag: string, { image: { digest } }: DemoBuild, daysAgo: number) => {
    const list = moves.get(tag) ?? []
    if (list.at(-1)?.digest !== digest) list.push({ time: at(daysAgo, now), digest })
    moves.set(tag, list)
  }
  const past = builds.filter(({ daysAgo }) => daysAgo > 0)
  for (const build of past) {
    add(build.version, build, build.daysAgo)
    add('candidate', build, build.daysAgo)
  }
  for (const [tag, after] of Object.entries(line.follow)) {
    for (const build of past) if (build.daysAgo > after) add(tag, build, build.daysAgo - after)
  }
  for (const daysAgo of line.rollbacks ?? []) rollBack(moves.get('stable') ?? [], at(daysAgo, now))
  const last = builds.at(-1)!
  const current = Object.keys(line.follow).filter((tag) => line.follow[tag] === 0)
  const newest = last.daysAgo === 0 ? { build: last, tags: [last.version, 'candidate', ...current] } : undefined
  return { builds, moves, newest }
}

/** Image of the public organization. It has the packages of the repository of the same name, if the company has one. */
export async function publicBuild(repo: string, now: Date): Promise<DemoBuild> {
  const named = Object.keys(lines).find((path) => path.endsWith(`/${repo}`))
  const line = named ? lines[named]! : { sources: ['busybox'], days: [0], follow: latest }
  return buildOf(`public-${repo}`, line, 1, 1, now)
}

/** Inserts an update to the previous digest, unless the tag had only one digest by then. */
function rollBack(moves: DemoMove[], time: string): void {
  const next = moves.findIndex((move) => move.time > time)
  const [current, before] = [moves[next - 1], moves[next - 2]]
  if (next > 1 && current && before) moves.splice(next, 0, { time, digest: before.digest })
}

async function buildOf(repo: string, line: Line, daysAgo: number, count: number, now: Date): Promise<DemoBuild> {
  const { sources, libraries, hasSbom } = line
  const version = `${versionAt(sources[0]!, daysAgo).replace(/[_-].*/, '')}-${count}`
  const input: ImageInput = {
    title: repo,
    version,
    packages: packagesAt(sources, daysAgo),
    ...(libraries && { libraries }),
    // Images of several sizes. The sizes are small, so that the demo starts quickly.
    fillerBytes: 24_000 * sources.length,
    created: new Date(at(daysAgo, now)),
  }
  const image = await demoImage(input)
  return { daysAgo, version, image, sbom: hasSbom && daysAgo < 32 ? demoSbom(image, input) : undefined }
}

/** Time of an event with this age. Builds of today are an hour old. */
const at = (daysAgo: number, now: Date): string =>
  new Date(now.getTime() - Math.max(daysAgo * day, day / 24)).toISOString()
