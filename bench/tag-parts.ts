// `bin/pinfold-node bench/tag-parts.ts`: searches for tags of a large repository by a part of their names. Defaults: `--tags
// 1000000 --names build`. With `--names commit`, each name is a commit hash of 40 characters. It uses PostgreSQL if
// PINFOLD_TEST_DATABASE names one.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { type Db, raw, sql } from '#db/sql.ts'
import { indexTags } from '#domains/registry/tags/index-tags.job.ts'
import { runJob } from '../test/support/background-jobs.ts'
import { startPinfold } from '../test/support/pinfold.ts'

const { values } = parseArgs({
  options: { tags: { type: 'string', default: '1000000' }, names: { type: 'string', default: 'build' } },
})
const count = Number(values.tags)
await using pinfold = await startPinfold()
const { app, operator } = pinfold
const { db } = app

const nameOf = {
  sqlite: { build: `printf('build-%08d', i)`, commit: 'lower(hex(randomblob(20)))' },
  postgres: { build: `'build-' || lpad(i::text, 8, '0')`, commit: 'md5(i::text) || left(md5((-i)::text), 8)' },
}[db.engine] as Record<string, string>
const org = await pinfold.seed.group('')
const uid = (await pinfold.seed.repo(org.uid)).uid as string
const { id } = (await db.get<{ id: number }>(sql`SELECT id FROM repos WHERE uid = ${uid}`))!
const now = app.clock().toISOString()
const slice = 50_000
for (let from = 0; from < count; from += slice) {
  const to = Math.min(from + slice, count) - 1
  await db.tx((tx) =>
    tx.run(sql`
      INSERT INTO tags (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)
      WITH RECURSIVE n(i) AS (SELECT CAST(${from} AS INTEGER) UNION ALL SELECT i + 1 FROM n WHERE i < ${to})
      SELECT CAST(${`${uid}/`} AS TEXT) || CAST(10000000 + i AS TEXT), CAST(${id} AS INTEGER), ${raw(nameOf[values.names]!)},
             '', 0, 0, '[]', CAST(${now} AS TEXT), CAST(${now} AS TEXT), CAST(${now} AS TEXT) FROM n`),
  )
}
await db.tx((tx) =>
  tx.run(sql`INSERT INTO list_counts (kind, place, shard, total) VALUES ('tags.0', ${uid}, 0, ${count})`),
)

const bytes = {
  sqlite: () => db.get(sql`SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()`),
  postgres: () =>
    db.get(sql`
      SELECT sum(pg_total_relation_size(c.oid)) AS bytes FROM pg_class c
       WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`),
}
const bytesNow = async (): Promise<number> => Number(((await bytes[db.engine]()) as { bytes: number }).bytes)

const held: number[] = []
/** Processor time of this thread, in which SQLite writes. Other load on the machine does not count. */
const used: number[] = []
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
const timed: Db = {
  ...db,
  async tx(work, options) {
    let [began, cpu] = [0, 0]
    const result = await db.tx((tx) => {
      began = performance.now()
      cpu = cpuMs()
      return work(tx)
    }, options)
    held.push(performance.now() - began)
    used.push(cpuMs() - cpu)
    return result
  },
}
const before = await bytesNow()
const loop = monitorEventLoopDelay({ resolution: 5 })
loop.enable()
const began = performance.now()
await runJob({ ...app, db: timed }, indexTags)
const seconds = (performance.now() - began) / 1000
loop.disable()
const ranks = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b)
  return [0.5, 0.99, 1].map((share) => `${sorted[Math.ceil(sorted.length * share) - 1]!.toFixed(0)} ms`).join(', ')
}
const rows: [string, string][] = [
  [`the job, for ${count} tags`, `${seconds.toFixed(1)} s`],
  ['its transactions, with the commit: median, p99, longest', ranks(held)],
  ['processor time of this thread for each', ranks(used)],
  ['the longest that it keeps everything else waiting', `${(loop.max / 1e6).toFixed(0)} ms`],
  ['bytes of the index', `${((await bytesNow()) - before) / 1e6} MB`],
]

/** Until nothing is left, or for a page where there is much. */
async function search(part: string): Promise<{ ms: number; found: number; requests: number }> {
  const start = performance.now()
  let [found, requests, pageToken] = [0, 0, '']
  do {
    const asked = new URLSearchParams({ part, pageToken })
    const { status, body } = await operator.get(`/registry/v2/repos/${uid}/tags?${asked}`)
    if (status !== 200) throw new Error(JSON.stringify(body))
    requests++
    found += body.tags.length
    pageToken = body.nextPageToken as string
  } while (pageToken !== '' && found < 50)
  return { ms: performance.now() - start, found, requests }
}

const newest = await db.get<{ name: string }>(
  sql`SELECT name FROM tags WHERE repo_id = ${id} ORDER BY name DESC LIMIT 1`,
)
const { name } = newest!
const parts = {
  'the last': name.slice(3),
  'the end of the last': name.slice(-6),
  none: `${name}x`,
  'no such part': 'qzv',
}
for (const [what, part] of Object.entries({
  ...parts,
  'three characters': name.slice(-3),
  two: name.slice(-2),
  one: '0',
})) {
  const times: number[] = []
  let seen = { ms: 0, found: 0, requests: 0 }
  for (let round = 0; round < 10; round++) {
    seen = await search(part)
    times.push(seen.ms)
  }
  const median = times.sort((a, b) => a - b)[5]!
  const { found, requests } = seen
  rows.push([
    `${what}: \`${part}\``,
    `${median.toFixed(1)} ms, at most ${times.at(-1)!.toFixed(1)}; ${found} tags, ${requests} requests`,
  ])
}
console.log('| What | measured |\n| --- | --- |')
for (const row of rows) console.log(`| ${row.join(' | ')} |`)
