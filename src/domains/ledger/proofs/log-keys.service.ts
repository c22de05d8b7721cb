import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import * as store from './logs.store.ts'

/**
 * Time for which a former key signs together with its successor. Clients with the old policy can get the new policy in this time.
 */
const besideMs = 30 * 24 * 3_600_000

/** Keys that currently sign these logs, oldest first. */
export async function logKeysNow(
  reader: Reader,
  { clock }: Pick<App, 'clock'>,
  logs: readonly number[],
): Promise<store.LogKey[]> {
  const since = new Date(clock().getTime() - besideMs).toISOString()
  const keys = await store.logKeys(reader, logs)
  return keys.filter(({ log }, i) => {
    const successor = keys.find((other, n) => n > i && other.log === log)
    return !successor || successor.createTime > since
  })
}
