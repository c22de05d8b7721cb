import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { isUid, operatorUid } from '#lib/uid.ts'
import { namesOf } from './identities.store.ts'

/**
 * What those are called who did something, by uid; a person without a name by their address. Whoever is gone is not among
 * them. Nobody's rights are looked at: what they did is told to those who may see it, and with it who it was.
 */
export async function actorNames(reader: Reader, uids: readonly string[]): Promise<Map<string, string>> {
  const names = new Map([[operatorUid, 'operator']])
  const asked = [...new Set(uids)].filter((uid) => isUid(uid) && !names.has(uid))
  for (const some of chunks(asked, 200)) {
    for (const { uid, name, email } of await namesOf(reader, some)) names.set(uid, name || email)
  }
  return names
}
