// Comparison of acknowledged writes with the stored resources, after the server was killed.
import assert from 'node:assert/strict'
import { openDb } from '#db/open.ts'
import { raw, sql } from '#db/sql.ts'
import { type Client, clientOf, type Json } from './pinfold.ts'
import { freeAddress, type Process, startProcess, type TestStorage, tokenOf } from './process.ts'

const kinds = {
  repos: { path: '/registry/v2/repos', event: 'dev.pinfold.api.platform.registry.repo', orders: ['uid', 'name'] },
  identities: { path: '/iam/v2/identities', event: 'dev.pinfold.api.iam.identity', orders: ['uid', 'name'] },
} as const
type Kind = keyof typeof kinds
type Verb = 'created' | 'updated' | 'deleted'

/** One resource: its last acknowledged state, a write that may have happened after it, and the events that must exist. */
type Entry = {
  kind: Kind
  name: string
  uid: string
  state: Json | undefined
  doubt: { verb: Verb; description: string } | undefined
  events: Record<Verb, number>
}

export type Tally = {
  sent: number
  acknowledged: number
  refused: number
  /** Writes without an answer because of the kill. They may have happened or not. */
  doubtful: number
  /** Number of writes without an answer that had happened. */
  happened: number
  resources: number
}

/** Kills a server during `writes` concurrent writes, `rounds` times on the same database. Checks the database after each kill. */
export async function killRounds(
  storage: TestStorage,
  rounds: number,
  writes: number,
  report: (round: number, tally: Tally) => void = () => {},
): Promise<Tally> {
  const entries = new Map<string, Entry>()
  const sum: Tally = { sent: 0, acknowledged: 0, refused: 0, doubtful: 0, happened: 0, resources: 0 }
  let group = ''
  const listen = await freeAddress()
  for (let round = 1; round <= rounds; round++) {
    await using server = await startProcess(storage, { listen })
    const client = clientOf(server.url, await tokenOf(storage))
    if (group === '') group = (await client.post('/iam/v2/groups/', { name: 'acme' })).body.uid as string
    const tally = await writeAndKill(server, client, group, entries, round, writes)
    await storage.settled()

    await using again = await startProcess(storage, { listen })
    tally.happened = await check(storage, clientOf(again.url, await tokenOf(storage)), group, entries)
    tally.resources = [...entries.values()].filter((entry) => entry.state).length
    report(round, tally)
    for (const key of ['sent', 'acknowledged', 'refused', 'doubtful', 'happened'] as const) sum[key] += tally[key]
    sum.resources = tally.resources
  }
  return sum
}

/** Starts all writes at once, each to a separate resource. Kills the server once a random share of them is acknowledged. */
async function writeAndKill(
  server: Process,
  client: Client,
  group: string,
  entries: Map<string, Entry>,
  round: number,
  writes: number,
): Promise<Tally> {
  const tally: Tally = { sent: 0, acknowledged: 0, refused: 0, doubtful: 0, happened: 0, resources: 0 }
  const killAfter = Math.ceil(writes * (0.1 + Math.random() * 0.7))
  const old = shuffled([...entries.values()].filter((entry) => entry.state)).slice(0, writes / 2)
  const created = Array.from({ length: writes - old.length }, (_, i): Entry => {
    const kind: Kind = i % 4 === 0 ? 'identities' : 'repos'
    const events = { created: 0, updated: 0, deleted: 0 }
    return { kind, name: `${kind}-${round}-${i}`, uid: '', state: undefined, doubt: undefined, events }
  })
  for (const entry of created) entries.set(entry.name, entry)

  await Promise.all(
    shuffled([...old, ...created]).map(async (entry, i) => {
      const verb: Verb = !entry.state ? 'created' : i % 3 === 0 ? 'deleted' : 'updated'
      const description = `round ${round}, write ${i}`
      entry.doubt = { verb, description }
      tally.sent++
      const answer = await send(client, group, entry, verb, description).catch(() => undefined)
      if (!answer) {
        tally.doubtful++
        return
      }
      entry.doubt = undefined
      if (answer.status !== 200) {
        assert.equal(answer.status, 503, `${verb} ${entry.name}: ${answer.text}`)
        tally.refused++
        return
      }
      apply(entry, verb, verb === 'deleted' ? undefined : answer.body)
      if (++tally.acknowledged === killAfter) server.kill('SIGKILL')
    }),
  )
  server.kill('SIGKILL') // Needed if the server refuses too many writes to reach this share.
  const { signal } = await server.exited
  assert.equal(signal, 'SIGKILL')
  return tally
}

function send(client: Client, group: string, entry: Entry, verb: Verb, description: string) {
  const { path } = kinds[entry.kind]
  if (verb === 'deleted') return client.delete(`${path}/${entry.uid}`)
  if (verb === 'updated') return client.patch(`${path}/${entry.uid}`, { description })
  const claimMatch = { issuer: 'https://issuer.example.com', subject: entry.name }
  const body = { name: entry.name, description, ...(entry.kind === 'identities' ? { claimMatch } : {}) }
  return client.post(`${path}/${group}`, body)
}

function apply(entry: Entry, verb: Verb, state: Json | undefined): void {
  entry.state = state
  if (state) entry.uid = state.uid as string
  entry.events[verb]++
  entry.doubt = undefined
}

/**
 * Checks that every acknowledged write is stored, and every write without an answer completely or not at all. Returns how many of
 * the latter had happened.
 */
async function check(
  storage: TestStorage,
  client: Client,
  group: string,
  entries: Map<string, Entry>,
): Promise<number> {
  let happened = 0
  for (const kind of Object.keys(kinds) as Kind[]) {
    const found = await everything(client, group, kind)
    const mine = [...entries.values()].filter((entry) => entry.kind === kind)
    for (const entry of mine) {
      const state = found.get(entry.name)
      found.delete(entry.name)
      if (entry.doubt && hasHappened(entry, state)) {
        apply(entry, entry.doubt.verb, state)
        happened++
      }
      entry.doubt = undefined
      assert.deepEqual(state, entry.state, `${entry.name} is not what its client was told`)
    }
    assert.deepEqual([...found.keys()], [], 'there are resources that nobody asked for')
  }
  await checkEvents(storage, entries)
  return happened
}

function hasHappened({ state: before, doubt }: Entry, after: Json | undefined): boolean {
  if (doubt!.verb === 'deleted') return after === undefined
  return after !== undefined && after.description === doubt!.description && after.uid === (before?.uid ?? after.uid)
}

/** Reads all resources of a kind by name, in each order. All orders must have the same resources and the right total. */
async function everything(client: Client, group: string, kind: Kind): Promise<Map<string, Json>> {
  const views = kinds[kind].orders.flatMap((order) => [
    `uidp.descendants_of=${group}&order_by=${order}`,
    `uidp.children_of=${group}&order_by=${order}%20desc`,
  ])
  const found: Map<string, Json>[] = []
  for (const view of views) {
    const items: Json[] = []
    let token = ''
    do {
      const page = await client.get(`${kinds[kind].path}?${view}&page_size=200&page_token=${token}`)
      assert.equal(page.status, 200, page.text)
      items.push(...(page.body[kind] as Json[]))
      token = page.body.nextPageToken as string
      if (!token) assert.equal(Number(page.body.totalCount), items.length, `the total of ${view}`)
    } while (token)
    found.push(new Map(items.map((item) => [item.name as string, item])))
    assert.equal(found.at(-1)!.size, items.length)
    assert.deepEqual([...found.at(-1)!.keys()].sort(), [...found[0]!.keys()].sort(), view)
  }
  return found[0]!
}

/** Checks that each change has exactly one event, which contains the state of the resource, and that no other events exist. */
async function checkEvents(storage: TestStorage, entries: Map<string, Entry>): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const db = closing.adopt(await openDb({ database: storage.database, file: `${storage.data}/pinfold.db` }), (open) =>
    open.close(),
  )
  if (db.engine === 'sqlite') assert.deepEqual(await db.all(raw('PRAGMA integrity_check')), [{ integrity_check: 'ok' }])
  const rows = await db.all<{ type: string; subject: string; body: string }>(
    sql`SELECT type, subject, body FROM events_outbox WHERE type NOT LIKE ${'%.group.created.v1'} ORDER BY id`,
  )
  const bySubject = Map.groupBy(rows, (row) => row.subject)
  for (const entry of entries.values()) {
    const events = bySubject.get(entry.uid) ?? []
    bySubject.delete(entry.uid)
    const { event } = kinds[entry.kind]
    const count = (verb: Verb) => events.filter((row) => row.type === `${event}.${verb}.v1`).length
    const seen = { created: count('created'), updated: count('updated'), deleted: count('deleted') }
    assert.deepEqual(seen, entry.events, `the events of ${entry.name}`)
    if (entry.state) assert.equal(JSON.parse(events.at(-1)!.body).description, entry.state.description)
  }
  assert.deepEqual([...bySubject.keys()], [], 'there are events of nothing')
}

function shuffled<T>(items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[items[i], items[j]] = [items[j]!, items[i]!]
  }
  return items
}
