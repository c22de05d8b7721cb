// Server with a transparency log and a stored checkpoint. Tests can roll back the database or the checkpoint.
import { type Blobs, type CheckpointStore, StoreUnavailable } from '#blobs/blobs.ts'
import { insertsOf } from '#db/bulk.ts'
import { sql } from '#db/sql.ts'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { checkpointName } from '#domains/ledger/proofs/logs.model.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { parseNote } from '#lib/tlog/notes.ts'
import { type Finding, verify } from '../../src/maintenance/verify.ts'
import { runJob } from './background-jobs.ts'
import { captureLog } from './log.ts'
import { type Json, startPinfold } from './pinfold.ts'
import { plantTag } from './tags.ts'

type Settings = Parameters<typeof startPinfold>[0]

/** Starts a server with a signed log of two entries. */
export async function scene(settings: Settings = {}) {
  const pinfold = await startPinfold({ jobs: [], ...settings })
  const { app, operator, seed } = pinfold
  const { log, lines } = captureLog('warn')
  app.log = log
  const org = (await seed.group('', { name: 'acme' })).uid as string
  const repo = (await seed.repo(org, { name: 'app' })).uid as string
  let moves = 0
  const move = () => plantTag(pinfold, repo, 'v1', `image ${moves++}`)
  const sign = () => runJob(app, sequenceLedgers)
  await move()
  await sign()
  const row = await app.db.get<{ id: number; origin: string }>(sql`SELECT id, origin FROM ledger_logs`)
  const { id, origin } = row!
  const name = checkpointName(origin)
  const signed = async (): Promise<string> => {
    const { checkpoint } = (await app.db.get<{ checkpoint: string }>(sql`
      SELECT checkpoint FROM ledger_logs WHERE id = ${id}`))!
    return parseNote(checkpoint)!.text
  }
  return {
    ...{ pinfold, app, operator, lines, org, repo, id, origin, name, move, sign, signed },
    stored: async () => (await app.blobs.checkpoints.read(name))?.text,
    sizeOf: (text: string | undefined) => parseCheckpoint(text ?? '')?.size,
    stateOf: async () =>
      (await app.db.get<{ state: number }>(sql`SELECT state FROM ledger_logs WHERE id = ${id}`))!.state,
    errors: () => lines.filter(({ level }) => level === 'error').map(({ message, reason }) => `${message}: ${reason}`),
    warnings: () => lines.filter(({ level }) => level === 'warn').map(({ message }) => String(message)),
    findings: async (repair = false) => {
      const found: Finding[] = []
      await verify(app.config, { repair, hash: false, only: ['checkpoints'], found: (one) => found.push(one) })
      return found.map(({ problem, repaired }) => [problem, repaired])
    },
    [Symbol.asyncDispose]: () => pinfold[Symbol.asyncDispose](),
  }
}
export type Scene = Awaited<ReturnType<typeof scene>>

/** Replaces the store of checkpoints. */
export function replaceStore({ app }: Scene, way: (real: CheckpointStore) => Partial<CheckpointStore>): () => void {
  const real = app.blobs
  const open: { blobs: Blobs } = app
  open.blobs = { ...real, checkpoints: { ...real.checkpoints, ...way(real.checkpoints) } }
  return () => {
    open.blobs = real
  }
}

export const away = () => Promise.reject(new StoreUnavailable('the bucket is unavailable'))

/** Returns a function that rolls back the database to this moment, as a restore or a failover with data loss does. */
export async function remember({ app, id }: Scene): Promise<() => Promise<void>> {
  const columns = sql`size, checkpoint, checkpoint_size, checkpoint_time, stored_size`
  const log = (await app.db.get<Json>(sql`SELECT ${columns} FROM ledger_logs WHERE id = ${id}`))!
  const tiles = await app.db.all<{ level: number; idx: number; hashes: Uint8Array }>(sql`
    SELECT level, idx, hashes FROM ledger_tiles WHERE log_id = ${id}`)
  return () =>
    app.db.tx(async (tx) => {
      await tx.run(sql`DELETE FROM ledger_openings WHERE log_id = ${id} AND idx >= ${log.size}`)
      await tx.run(sql`DELETE FROM ledger_entries WHERE log_id = ${id} AND idx >= ${log.size}`)
      await tx.run(sql`DELETE FROM ledger_tiles WHERE log_id = ${id}`)
      const rows = tiles.map(({ level, idx, hashes }) => sql`(${id}, ${level}, ${idx}, ${hashes})`)
      const into = sql`INSERT INTO ledger_tiles (log_id, level, idx, hashes)`
      for (const insert of insertsOf(into, rows)) await tx.run(insert)
      await tx.run(sql`
        UPDATE ledger_logs
           SET size = ${log.size}, checkpoint = ${log.checkpoint}, checkpoint_size = ${log.checkpoint_size},
               checkpoint_time = ${log.checkpoint_time}, stored_size = ${log.stored_size}
         WHERE id = ${id}`)
    })
}
