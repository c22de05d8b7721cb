import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { isUid, operatorUid, parentOf } from '#lib/uid.ts'
import { namesOf } from './identities.store.ts'

/**
 * Names of the actors of changes, by uid. A person without a name has their address, and a push token the name of its maker.
 * Deleted actors are left out. Checks no permissions: callers who can see a change can see its actor.
 */
export async function actorNames(reader: Reader, uids: readonly string[]): Promise<Map<string, string>> {
  const names = new Map([[operatorUid, 'operator']])
  const look = async (some: readonly string[]) => {
    const asked = [...new Set(some)].filter((uid) => isUid(uid) && !names.has(uid))
    for (const part of chunks(asked, 200)) {
      for (const { uid, name, email } of await namesOf(reader, part)) names.set(uid, name || email)
    }
  }
  await look(uids)
  // The uid of a push token is below that of its maker.
  const below = uids.filter((uid) => isUid(uid) && !names.has(uid) && uid.includes('/'))
  await look(below.map(parentOf))
  for (const uid of below) {
    const maker = names.get(parentOf(uid))
    if (maker !== undefined) names.set(uid, `${maker}, push token`)
  }
  return names
}
