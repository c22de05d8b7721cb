// Tags that get another image each day, with contents and findings: test data for daily counts.
import { hash } from 'node:crypto'
import type { App } from '#app.ts'
import { sql } from '#db/sql.ts'
import { saveContents, saveSize } from '#domains/registry/images/image-contents.store.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import * as lists from '#domains/scanning/lists/lists.store.ts'
import { runJob } from './background-jobs.ts'
import { imageOf, type RegistryClient, types } from './registry.ts'
import { readSource, recordAbout } from './scanning.ts'

export const ecosystem = 'Alpine:v3.19'
const distribution = { id: 'alpine', version: '3.19' }
const dayMs = 86_400_000
/** Number of versions of each package. Each version has a vulnerability that a later version has fixed. */
const versions = 5
/** Interval of packages with vulnerabilities: one of this many packages has some. */
const oneOf = 10

export type Days = { tags: number; days: number; packages: number; names: number }

/** Repository of the history, a client that pushes at a given time, and the clock of the server. */
export type HistoryServer = {
  app: App
  repo: { uid: string; path: string }
  setTime(time: string): void
  pusher(): Promise<RegistryClient>
}

export const tagOf = (i: number): string => `tag-${i}`

/**
 * Creates the history from a day on. At eight o'clock each day, the source is read, each tag moves, and one package of its image
 * gets a newer version.
 */
export async function makeDays(
  server: HistoryServer,
  first: string,
  { tags, days, packages, names }: Days,
): Promise<void> {
  const { app, repo, setTime, pusher } = server
  const noon = (day: number) => new Date(Date.parse(`${first}T08:00:00Z`) + day * dayMs).toISOString()
  setTime(noon(0))
  const numbers = await makePackages(app, names)
  const row = (await findRepoByUid(app.db, repo.uid))!
  const layer = await (await pusher()).pushBlob(repo.path, 'no layer is read here')
  const held = Array.from({ length: tags }, (_, tag) =>
    Array.from({ length: packages }, (_, i) => ({ name: (tag * 37 + i * 11) % names, version: (tag + i) % versions })),
  )
  for (let day = 0; day < days; day++) {
    const now = noon(day)
    setTime(now)
    // On each tenth day, the source has new vulnerabilities.
    const news = day % 10 === 9 ? [about(`CVE-2026-${9000 + day}`, (day * oneOf) % names, '')] : []
    await readSource(app, ecosystem, news)
    const client = await pusher()
    for (const [tag, of] of held.entries()) {
      const changed = of[(day * 7) % packages]!
      changed.version = (changed.version + 1) % versions
      const text = JSON.stringify({ architecture: 'amd64', os: 'linux', created: `${now} ${tag}` })
      const config = await client.pushBlob(repo.path, text, types.config)
      const { digest } = await client.pushManifest(repo.path, imageOf(config, [layer]), tagOf(tag))
      const components = of.map(({ name, version }) => numbers[name]![version]!)
      await app.db.tx(async (tx) => {
        const key = { hash: hash('sha256', `${tag} ${day}`), distribution }
        const { listNo } = await lists.openList(tx, key, { ecosystem, ecosystems: [ecosystem], packages, now })
        const entries = components.map((componentNo) => ({ componentNo, ownerNo: 0, locations: '' }))
        await lists.insertEntries(tx, listNo, entries)
        await lists.completeList(tx, listNo)
        await lists.noteListMatched(tx, listNo, now)
        const found = {
          ...({ state: 'known', source: 'layers' } as const),
          distribution,
          gaps: [],
          reason: '',
          message: '',
        }
        await saveContents(tx, row.id, { ...found, digest, packages: key.hash }, now)
        await saveSize(tx, row.id, digest, config.size + layer.size)
        await tx.run(sql`DELETE FROM image_reads WHERE repo_id = ${row.id} AND digest = ${digest}`)
      })
    }
  }
  setTime(noon(days))
}

const nameOf = (i: number): string => `package-${i}`
const versionOf = (i: number): string => `1.${i}-r0`
const about = (id: string, name: number, fixed: string) => recordAbout(id, ecosystem, nameOf(name), fixed)

/** Stores all versions of all packages, and compares them with two records. Returns their row ids. */
async function makePackages(app: App, names: number): Promise<number[][]> {
  const known = Array.from({ length: Math.ceil(names / oneOf) }, (_, i) => [
    about(`CVE-2025-${1000 + i}`, i * oneOf, versionOf(1 + (i % (versions - 1)))),
    about(`CVE-2025-${5000 + i}`, i * oneOf, versionOf(1 + ((i + 2) % (versions - 1)))),
  ])
  await readSource(app, ecosystem, known.flat())
  const all = Array.from({ length: names * versions }, (_, i) => {
    const [name, version] = [nameOf(Math.floor(i / versions)), versionOf(i % versions)]
    return { kind: 'apk' as const, name, version, origin: name, originVersion: version, arch: 'x86_64' }
  })
  const list = await prepareList(app, { hash: hash('sha256', 'all'), distribution }, all)
  await app.db.tx((tx) => completeList(tx, list, '0'.repeat(40), app.clock().toISOString()))
  await runJob(app, matchPackages)
  const rows = await app.db.all<{ id: number; name: string; version: string }>(sql`
    SELECT id, name, version FROM components ORDER BY id`)
  const numbers = new Map(rows.map(({ id, name, version }) => [`${name} ${version}`, Number(id)]))
  return Array.from({ length: names }, (_, name) =>
    Array.from({ length: versions }, (_, version) => numbers.get(`${nameOf(name)} ${versionOf(version)}`)!),
  )
}
