// Signs checkpoints of the logs. Each checkpoint is stored in the blob store before it is signed.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { parseVkey, signLine } from '#lib/tlog/notes.ts'
import { logKeysNow } from './log-keys.service.ts'

import { type LogKey, signLog, unsignedLogs } from './logs.store.ts'
import { passOver, rootOf, type StoredHead, storeCheckpoints, type UnsignedLog } from './stored-checkpoints.service.ts'
import { noteStored } from './stored-checkpoints.store.ts'

type By = Pick<App, 'db' | 'blobs' | 'cipher' | 'clock' | 'log' | 'failures' | 'checkpointGuard'>

const logsAtOnce = 100
/** Longest time that one run waits for the blob store. The same job adds entries to logs, which have to wait meanwhile. */
const storeMs = 5000
const rowLocks = { isolation: 'rowLocks' } as const

/**
 * Signs the logs that have grown. `answeredTo` is used as in `unsignedLogs`. If the blob store is unavailable, signs nothing.
 * After a crash, the next run makes the same checkpoint, finds it in the store and signs it. If a run would have to wait for the
 * store, it ends. The next run begins with the following logs, so that all logs have their turn.
 */
export async function signLogs(
  by: By,
  lease: Pick<Lease, 'tx' | 'signal' | 'check'>,
  {
    answeredTo,
    most = logsAtOnce,
    deadline = AbortSignal.timeout(storeMs),
  }: { answeredTo?: string | undefined; most?: number; deadline?: AbortSignal } = {},
): Promise<{ signed: number; isWaiting: boolean }> {
  const { checkpointGuard: guard } = by
  let signed = 0
  let hasStored = false
  let after = guard.signedTo
  let isLastRound = after === 0
  for (;;) {
    lease.check()
    const page = lease.tx((tx) => commitUnsigned(tx, by, { after, most, answeredTo }), rowLocks)
    const { logs, last, isEnd } = await page
    const { stored, isWaiting } = await storeCheckpoints(by, { ...lease, deadline, hasStored }, logs)
    hasStored ||= stored.length > 0
    if (stored.length > 0) signed += await lease.tx((tx) => signStored(tx, by, stored), rowLocks)
    guard.signedTo = isEnd ? 0 : last
    if (isWaiting || (isEnd && isLastRound)) return { signed, isWaiting }
    if (isEnd) isLastRound = true
    after = guard.signedTo
  }
}

/**
 * Logs that have grown. Their entries may have been committed without waiting for the disk. This commit waits for the disk and
 * makes the entries durable too. Otherwise a power cut could lose entries of a stored checkpoint.
 */
async function commitUnsigned(
  tx: Tx,
  by: By,
  which: Parameters<typeof unsignedLogs>[1],
): Promise<{ last: number; isEnd: boolean; logs: UnsignedLog[] }> {
  const logs = await unsignedLogs(tx, which)
  const grown = logs.filter(({ size, storedSize }) => storedSize < size).map(({ id }) => id)
  if (grown.length > 0) await noteStored(tx, grown)
  const heads: UnsignedLog[] = []
  for (const log of logs) {
    try {
      heads.push({ ...log, root: await rootOf(tx, log.id, log.size) })
    } catch (error) {
      passOver(by, log, error)
    }
  }
  return { last: logs.at(-1)?.id ?? 0, isEnd: logs.length < which.most, logs: heads }
}

async function signStored(tx: Tx, by: By, stored: readonly StoredHead[]): Promise<number> {
  const logs = stored.map(({ log }) => log.id)
  const keys = await logKeysNow(tx, by, logs)
  let signed = 0
  for (const { log, text } of stored) {
    let lines: string[]
    try {
      lines = keys.filter((key) => key.log === log.id).map((key) => signatureOf(by, text, key))
    } catch (error) {
      passOver(by, log, error)
      continue
    }
    const checkpoint = `${text}\n${lines.join('')}`
    const isNew = await signLog(tx, log.id, { checkpoint, size: log.size, time: by.clock().toISOString() })
    if (isNew) signed++
  }
  return signed
}

function signatureOf({ cipher }: By, text: string, { vkey, privateKey }: LogKey): string {
  const [key, plain] = [parseVkey(vkey), cipher.decrypt('ledger-key', privateKey)]
  if (!key || !plain) throw new Error(`the key ${vkey} is encrypted under another master key`)
  return signLine(text, key, plain)
}
