// Leases for work that only one node may do. A lease is a row whose owner regularly raises the number `beat`. If a node sees the
// same `beat` for the length of a lease, it takes the lease over and raises `fence`. A former owner that was only slow still has
// the old fence, so its transactions fail.
import { createTrust, watchHeartbeats } from '#lib/heartbeats.ts'
import { beatNode, deleteNode, type NodeBeat, type NodeFacts, nodeBeats } from './nodes.ts'
import { locking } from './row-locks.ts'
import type { Skew } from './skew.ts'
import { type Db, type Reader, sql, type Tx, type TxOptions } from './sql.ts'

/** Error of an owner whose lease another node has taken over. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

/**
 * Lease of one run of a background job. A job that runs on every node has a lease with fence 0, which no other node can take
 * over.
 */
export type Lease = {
  /** Id of this process among those that share the database. */
  readonly node: string
  readonly fence: number
  /** Aborted when the server stops. */
  readonly signal: AbortSignal
  /** True while the run may continue. False if the server stops, or if another node may have the lease. */
  holds(): boolean
  /** Throws LeaseLost if `holds` returns false. */
  check(): void
  /** Runs a transaction. Throws LeaseLost if another node has the lease. */
  tx: Db['tx']
  /** Repeats a transaction, with a pause after each, until it returns 0. Returns the sum of the results. Throws LeaseLost. */
  inBatches(batch: (tx: Tx) => Promise<number>, options?: TxOptions): Promise<number>
  /** True if a node has sent no heartbeat for the length of a lease, so that other nodes may take over its work. */
  isGone(node: string): boolean
}

/** Last run of a background job, by the clock of the database. */
export type LastRun = { start: string; end: string; result: string; status: string }
export type Taken = { name: string; last: LastRun }

export type Leases = {
  /** Lease for jobs that every node runs. */
  everyNode: Lease
  /** Lease of this job. `undefined` if another node has it. */
  find(name: string): Lease | undefined
  /** Writes a heartbeat of this node, without taking leases. */
  announce(): Promise<void>
  /** Writes a heartbeat of this node, renews its leases, and takes over leases without a live owner. Returns the new leases. */
  look(): Promise<Taken[]>
  /** Records a run. Does nothing if another node has the lease. */
  record(name: string, run: LastRun): Promise<void>
  /** Number of live servers, this one included. */
  livingNodes(): number
  /** Releases all leases, so that other nodes can take them at once. */
  release(): Promise<void>
}

export type LeaseOptions = {
  node: string
  leaseMs: number
  monotonic: () => number
  skew: Skew
  /** Names of the leases that this node may take. */
  names: readonly string[]
  /** Facts for the row of this server. Undefined for a process that is not a server. */
  facts?: NodeFacts | undefined
  signal: AbortSignal
}

const rowLocks = { isolation: 'rowLocks' } as const
/** Heartbeats do not wait for the disk, since losing one in a power cut does no harm. */
const beats = { isolation: 'rowLocks', durability: 'later' } as const
/** Pause between batches in milliseconds, so that other transactions can run. */
const pauseMs = 20

export function createLeases(db: Db, options: LeaseOptions): Leases {
  const { node, leaseMs, monotonic, skew, names, facts, signal } = options
  const quick = db.quick ?? db
  // With only one process, a lease of another owner is left over from an ended process, and can be taken at once.
  const watchedMs = db.shared ? leaseMs : 0
  const owners = watchHeartbeats<string>(watchedMs, monotonic)
  const nodes = watchHeartbeats<string>(watchedMs, monotonic)
  // An owner relies on its lease for three quarters of the time. Clocks may differ, and a statement may still be running.
  const trust = createTrust(leaseMs * 0.75, monotonic)
  const held = new Map<string, Lease>()
  let seen = new Map<string, NodeBeat>()
  /** Leases that were taken but not returned yet. If taking the next lease fails, the following call returns them. */
  const listUnannounced: Taken[] = []

  const isTrusted = () => !signal.aborted && (!db.shared || trust.holds())
  const isGone = (id: string) => id !== node && nodes.hasStalled(id, '', seen.get(id)?.beat ?? -1)
  const others = () => [...seen.keys()].filter((id) => id !== node && !isGone(id))

  function leaseOf(name: string, fence: number, tx: Db['tx']): Lease {
    const holds = (): boolean => isTrusted() && (fence === 0 || held.get(name)?.fence === fence)
    const check = (): void => {
      if (!holds()) throw new LeaseLost(`the lease of ${name} has expired`)
    }
    return { node, fence, signal, holds, check, tx, inBatches: batches(tx, check), isGone }
  }

  function fenced(name: string, fence: number): Db['tx'] {
    const isOurs = async (tx: Tx): Promise<boolean> => {
      const ours = await isOwner(tx, name, node, fence)
      if (!ours && held.get(name)?.fence === fence) held.delete(name)
      return ours
    }
    return guardedBy(db, name, isOurs)
  }

  async function beat(): Promise<void> {
    await skew.measure()
    const sent = monotonic()
    const still = new Set((await raiseBeats(quick, node, facts, skew)).map(({ name }) => name))
    trust.renewed(sent)
    for (const name of held.keys()) if (!still.has(name)) held.delete(name)
  }

  return {
    everyNode: leaseOf('', 0, (work, txOptions) => db.tx(work, txOptions)),
    find: (name) => held.get(name),

    announce: beat,
    async look() {
      await beat()
      seen = await quick.tx(nodeBeats, rowLocks)
      for (const [id, { beat: number }] of seen) nodes.hasStalled(id, '', number)
      skew.compare(others().map((id) => seen.get(id)!.offsetMs))
      const isFree = ({ name, owner, beat: number }: Owned) =>
        owner === '' || owner === node || owners.hasStalled(name, owner, number)
      for (const row of (await quick.tx((tx) => rowsOf(tx, names), rowLocks)).filter(isFree)) {
        const { name } = row
        if (held.has(name) || signal.aborted) continue
        const claimed = await quick.tx((tx) => claim(tx, row, node), rowLocks)
        if (!claimed) continue
        const { fence, ...last } = claimed
        held.set(name, leaseOf(name, fence, fenced(name, fence)))
        listUnannounced.push({ name, last })
      }
      return listUnannounced.splice(0)
    },

    async record(name, run) {
      const fence = held.get(name)?.fence
      if (fence !== undefined) await db.tx((tx) => recordRun(tx, { name, owner: node, fence }, run), beats)
    },

    livingNodes: () => 1 + others().length,

    async release() {
      held.clear()
      await db.tx(async (tx) => {
        await tx.run(sql`UPDATE duties SET owner = '' WHERE owner = ${node}`)
        await deleteNode(tx, node)
      }, rowLocks)
    },
  }
}

type Owned = { name: string; owner: string; beat: number }

/**
 * Checks the lease and locks its row until the transaction ends. So no other node can take the lease over before the writes are
 * visible. The lock does not block heartbeats. So a long transaction does not cost its node the leases.
 */
async function isOwner(tx: Tx, name: string, node: string, fence: number): Promise<boolean> {
  const row = await tx.get(sql`
    SELECT 1 AS found FROM duties
     WHERE name = ${name} AND owner = ${node} AND fence = ${fence} ${locking(tx, 'shared')}`)
  return row !== undefined
}

/** Takes a lease over. Returns `undefined` if the lease was renewed or taken since it was read. */
async function claim(tx: Tx, was: Owned, node: string): Promise<(LastRun & { fence: number }) | undefined> {
  // Waits for running transactions of the owner, and then checks whether it has sent a heartbeat meanwhile. After the lock
  // `deleting`, PostgreSQL treats the update as a change of the key. So a transaction of the owner that then locks the key
  // (`isOwner`) reads the new row, not an old version.
  await tx.all(sql`SELECT 1 AS found FROM duties WHERE name = ${was.name} ${locking(tx, 'deleting')}`)
  return tx.get(sql`
    INSERT INTO duties (name, owner, beat, fence) VALUES (${was.name}, ${node}, 1, 1)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, beat = duties.beat + 1, fence = duties.fence + 1
           WHERE duties.owner = ${was.owner} AND duties.beat = ${was.beat}
    RETURNING fence, run_start AS "start", run_end AS "end", run_result AS "result", run_status AS "status"`)
}

/** Rows of these jobs. A job without a row gets empty values. */
async function rowsOf(reader: Reader, names: readonly string[]): Promise<Owned[]> {
  const rows = await reader.all<Owned>(sql`SELECT name, owner, beat FROM duties`)
  const known = new Map(rows.map((row) => [row.name, row]))
  return names.map((name) => known.get(name) ?? { name, owner: '', beat: 0 })
}

/** Writes a heartbeat of the node. Returns the jobs whose leases it has. */
function raiseBeats(
  db: Pick<Db, 'tx'>,
  node: string,
  facts: NodeFacts | undefined,
  skew: Skew,
): Promise<{ name: string }[]> {
  const now = skew.now().toISOString()
  const offsetMs = skew.offsetMs()
  return db.tx(async (tx) => {
    if (facts) await beatNode(tx, node, facts, { now, offsetMs })
    return tx.all<{ name: string }>(sql`UPDATE duties SET beat = beat + 1 WHERE owner = ${node} RETURNING name`)
  }, beats)
}

/**
 * Repeats a batch until it returns 0. Throws if the lease is lost before, so that an interrupted run does not count as a success.
 */
function batches(tx: Db['tx'], check: () => void): Lease['inBatches'] {
  return async (batch, txOptions = rowLocks) => {
    let sum = 0
    for (let found = 1; found > 0; sum += found) {
      check()
      found = await tx(batch, txOptions)
      if (found > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    return sum
  }
}

/** Transactions that fail before any change if this node does not have the lease. */
function guardedBy(db: Db, name: string, isOurs: (tx: Tx) => Promise<boolean>): Db['tx'] {
  return (work, txOptions) =>
    db.tx(async (tx) => {
      if (await isOurs(tx)) return work(tx)
      throw new LeaseLost(`another server has the lease of ${name}`)
    }, txOptions)
}

type Held = { name: string; owner: string; fence: number }

async function recordRun(tx: Tx, { name, owner, fence }: Held, { start, end, result, status }: LastRun): Promise<void> {
  await tx.run(sql`
    UPDATE duties SET run_start = ${start}, run_end = ${end}, run_result = ${result}, run_status = ${status}
     WHERE name = ${name} AND owner = ${owner} AND fence = ${fence}`)
}
