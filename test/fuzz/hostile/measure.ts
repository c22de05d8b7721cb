// Measurements during the load: latency of /healthz, memory of the server, and size of its database.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import pg from 'pg'
import type { TestStorage } from '../../support/process.ts'

export function watchHealth(port: number) {
  let ms: number[] = []
  let late: number[] = []
  let failed: Record<string, number> = {}
  const thread = new Worker(new URL('./health.ts', import.meta.url), { workerData: { port } })
  thread.on('message', (one: { ms: number; late: number; status: number | string }) => {
    ms.push(one.ms)
    late.push(one.late)
    if (one.status !== 200) failed[one.status] = (failed[one.status] ?? 0) + 1
  })
  return {
    /** Returns the measurements since the last call. */
    take() {
      const taken = { ms, late, failed }
      ms = []
      late = []
      failed = {}
      return taken
    },
    stop: () => thread.terminate(),
  }
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}

export const inMs = (values: readonly number[]): string =>
  `p50 ${quantile(values, 0.5).toFixed(1)}, p99 ${quantile(values, 0.99).toFixed(1)}, max ${quantile(values, 1).toFixed(1)} ms`

/**
 * Memory of the process in megabytes, without its child processes. Mapped files, such as the program and the database, are left
 * out, since the system can free their memory at any time.
 */
export function residentMb(pid: number): number {
  const [, kb] = /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kb) / 1024
}

/** Memory of the child processes in megabytes: the process that reads images. */
export function childrenMb(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  return children.reduce((sum, child) => {
    try {
      return sum + residentMb(Number(child))
    } catch {
      return sum
    }
  }, 0)
}

/** Size of the database in megabytes. For SQLite, includes its write-ahead log. */
export async function databaseMb({ database, data }: TestStorage): Promise<number> {
  if (database === '') {
    const files = readdirSync(data).filter((file) => file.startsWith('pinfold.db'))
    return files.reduce((sum, file) => sum + statSync(join(data, file)).size, 0) / 1024 ** 2
  }
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const schema = new URL(database).searchParams.get('schema')
  const { rows } = await client
    .query(
      'SELECT sum(pg_total_relation_size(c.oid))::bigint AS size FROM pg_class c WHERE c.relkind = $1 AND c.relnamespace = $2::regnamespace',
      ['r', schema],
    )
    .finally(() => client.end())
  return Number(rows[0].size) / 1024 ** 2
}
