// Sends all hostile inputs at the same time, together with ordinary load, to a server process. To run it by hand:
//   bin/pinfold-node test/fuzz/hostile.ts --minutes 60
// `--database URL` uses PostgreSQL, and `--only 'KIND,KIND'` selects attacks. The p99 of /healthz must stay under 250 ms. Memory
// must stay within 300 MB of its value after one minute of ordinary load. No ordinary request may fail, and no response may be a
// server error.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openDb } from '#db/open.ts'
import { sampleAdvisory } from '../support/advisories.ts'
import { randomFrom } from '../support/random.ts'
import { connectionKinds } from './hostile/connections.ts'
import { attackWith, type Counts, isBroken, isRefusal, type Kinds } from './hostile/kinds.ts'
import { childrenMb, databaseMb, inMs, quantile, residentMb, watchHealth } from './hostile/measure.ts'
import { type Deeds, liveOrdinarily } from './hostile/ordinary.ts'
import { pushedKinds } from './hostile/pushed.ts'
import { strangerKinds } from './hostile/strangers.ts'
import { tenantKinds } from './hostile/tenant.ts'
import { openWorld } from './hostile/world.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    database: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    only: { type: 'string' },
    /** Seconds of ordinary load before the attacks begin. */
    warm: { type: 'string', default: '60' },
  },
})
if (values.database !== undefined) process.env.PINFOLD_TEST_DATABASE = values.database
const seed = Number(values.seed)
const most = { healthMs: 250, memoryMb: 300 }
const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)

const world = await openWorld({})
await using storage = world.storage
const { pid } = world.server
const advisories = Array.from({ length: 1000 }, (_, n) => sampleAdvisory(randomFrom(seed + n), n))
for (let i = 0; i < advisories.length; i += 100) {
  await world.operate('/control/v1/advisories:import', {
    parent: world.acme.uid,
    advisories: advisories.slice(i, i + 100),
  })
}
const db = await openDb({ database: storage.database, file: `${storage.data}/pinfold.db` })
const started = await world.evil.owner.oci('POST', 'evil/slow/blobs/uploads/')
const kinds: Kinds = {
  ...(await tenantKinds(world)),
  ...(await strangerKinds(world)),
  ...(await connectionKinds(world, () => String(started.headers.location))),
  ...(await pushedKinds(world)),
}
const wanted = values.only?.split(',') ?? Object.keys(kinds)
const chosen = Object.fromEntries(wanted.filter((name) => name !== '').map((name) => [name, kinds[name]!]))
say(`${storage.database ? 'PostgreSQL' : 'SQLite'}, seed ${seed}, ${wanted.length} kinds of attacks`)

const health = watchHealth(world.port)
const ordinary: Deeds = { times: new Map(), failures: [] }
const living = new AbortController()
const life = liveOrdinarily(world, db, seed, ordinary, living.signal)
await sleep(Number(values.warm) * 1000)
const before = health.take()
const start = { mb: residentMb(pid), databaseMb: await databaseMb(storage) }
const calm = new Map([...ordinary.times].map(([name, times]) => [name, times.splice(0)]))
say(`ordinary load alone: /healthz ${inMs(before.ms)}; ${start.mb.toFixed(0)} MB`)

const counts: Counts = new Map()
const attacking = new AbortController()
const attacks = attackWith(chosen, seed, counts, attacking.signal)
const all = {
  ms: [] as number[],
  late: [] as number[],
  failed: {} as Record<string, number>,
  mb: [] as number[],
  readerMb: 0,
}
const until = performance.now() + Number(values.minutes) * 60_000
/** Adds the measurements since the last call. */
function note(): number[] {
  const { ms, late, failed } = health.take()
  all.ms.push(...ms)
  all.late.push(...late)
  for (const [status, times] of Object.entries(failed)) all.failed[status] = (all.failed[status] ?? 0) + times
  all.mb.push(residentMb(pid))
  all.readerMb = Math.max(all.readerMb, childrenMb(pid))
  return ms
}
for (let _round = 1; performance.now() < until && world.server.output.stdout !== ''; _round++) {
  const recent: number[] = []
  for (let i = 0; i < 30 && performance.now() < until; i++) {
    await sleep(1000)
    recent.push(...note())
  }
  const reader = childrenMb(pid).toFixed(0)
  say(
    `/healthz ${inMs(recent)}; ${all.mb.at(-1)!.toFixed(0)} MB, reader ${reader} MB, ${ordinary.failures.length} failures`,
  )
}
attacking.abort()
await attacks
living.abort()
await life
note()
await health.stop()
const grown = (await databaseMb(storage)) - start.databaseMb
await db.close()
const ended = await world.close()

console.log('\nHostile, answers by status:')
for (const [name, answers] of counts) {
  console.log(`  ${name}: ${[...answers].map(([answer, times]) => `${answer} ${times}`).join(', ')}`)
}
console.log('Ordinary, times of each alone and under attack:')
for (const [name, times] of ordinary.times) {
  console.log(`  ${name}: ${times.length}; alone ${inMs(calm.get(name) ?? [])}; attacked ${inMs(times)}`)
}
const logged = Map.groupBy(
  ended.log.split('\n').filter((line) => line !== ''),
  messageOf,
)
for (const [message, lines] of logged)
  console.log(`Logged ${lines.length} times: ${message}\n  ${lines[0]!.slice(0, 1500)}`)
console.log(`The database grew by ${grown.toFixed(1)} MB; reading images took ${all.readerMb.toFixed(0)} MB at most`)

const answersThat = (are: (answer: string) => boolean): string[] =>
  [...counts].flatMap(([name, answers]) =>
    [...answers].filter(([answer]) => are(answer)).map(([answer, times]) => `${name}: ${answer} ${times} times`),
  )
const broken = answersThat(isBroken)
console.log(`Refused for lack of time or room: ${answersThat(isRefusal).join(', ') || 'nothing'}`)
const p99 = quantile(all.ms, 0.99)
const more = Math.max(...all.mb) - start.mb
const unwell = Object.entries(all.failed).map(([status, times]) => `${status} ${times} times`)
const criteria: [isHeld: boolean, text: string][] = [
  [
    p99 < most.healthMs && unwell.length === 0,
    `/healthz ${inMs(all.ms)} of ${all.ms.length}${unwell.join(', ')}; the thread that asks was late by ${inMs(all.late)}`,
  ],
  [
    more < most.memoryMb,
    `memory ${start.mb.toFixed(0)} MB at the start, ${Math.max(...all.mb).toFixed(0)} MB at most, ${all.mb.at(-1)!.toFixed(0)} MB at the end`,
  ],
  [ordinary.failures.length === 0, `${ordinary.failures.length} ordinary requests failed`],
  [broken.length === 0, `answers that blame the server: ${broken.join(', ') || 'none'}`],
  [ended.code === 0, `the server ended with ${ended.code}`],
]
for (const [isHeld, text] of criteria) console.log(`${isHeld ? 'PASS' : 'FAIL'} ${text}`)
await storage[Symbol.asyncDispose]()
process.exit(criteria.every(([isHeld]) => isHeld) ? 0 : 1)

function messageOf(line: string): string {
  try {
    const { message, error } = JSON.parse(line) as { message: string; error?: { message?: string } }
    return `${message} ${error?.message ?? ''}`.slice(0, 200)
  } catch {
    return line.slice(0, 200)
  }
}
