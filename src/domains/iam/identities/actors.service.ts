import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { isUid, operatorUid, parentOf } from '#lib/uid.ts'
import { namesOf } from './identities.store.ts'

/**
 * Names of the users who made changes, by uid. Without a name, the email address is used. A push token has the name of its
 * creator. Deleted identities are left out. Permissions are not checked, since callers who can see a change can see who made it.
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
  // The uid of a push token is below the uid of its creator.
  const below = uids.filter((uid) => isUid(uid) && !names.has(uid) && uid.includes('/'))
  await look(below.map(parentOf))
  for (const uid of below) {
    const maker = names.get(parentOf(uid))
    if (maker !== undefined) names.set(uid, `${maker}, push token`)
  }
  return names
}
