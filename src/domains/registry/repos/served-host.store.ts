import { servedUrl } from '#db/nodes.ts'
import type { Reader } from '#db/sql.ts'

/** What clients call the registry, where no request says it: `url` of the settings, else what the servers say; empty without one. */
export async function servedHost(reader: Reader, url: string): Promise<string> {
  const served = url || (await servedUrl(reader))
  return served === '' ? '' : new URL(served).host
}
