// Copy of an embedded database as of one moment, made while others write, and the reader of such a copy.
import { once } from 'node:events'
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { threadScript } from '#lib/files/assets.ts'
import { syncPath } from '#lib/files/folders.ts'
import type { Reader } from '../sql.ts'
import { connect } from './sqlite-connection.ts'

/**
 * Copies the database to `to`, which must not exist, without blocking writers. If the copy fails, `to` does not exist. Otherwise
 * it is complete and on disk.
 */
export async function copyDatabase(file: string, to: string): Promise<void> {
  const part = `${to}.part`
  await rm(part, { force: true })
  const thread = new Worker(threadScript('src/db/sqlite/snapshot-thread.mjs'), {
    workerData: { file, to: part },
    env: {},
    execArgv: [],
  })
  // Rejects with the error of the thread.
  await once(thread, 'exit')
  await syncPath(part)
  await rename(part, to)
  await syncPath(dirname(to))
}

export function openSnapshot(file: string): Reader & { close(): void } {
  const connection = connect(file, { readOnly: true })
  return {
    all: async (query) => connection.all(query),
    get: async <T>(query: Parameters<Reader['get']>[0]) => connection.all<T>(query)[0],
    close: () => connection.close(),
  }
}
