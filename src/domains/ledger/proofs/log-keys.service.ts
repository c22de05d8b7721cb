import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import * as store from './logs.store.ts'

/** How long a key goes on signing beside the one that took its place, so that whoever has its policy can get the next. */
const besideMs = 30 * 24 * 3_600_000

/** The keys that sign these logs now, oldest first. */
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
