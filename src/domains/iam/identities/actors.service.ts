import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { isUid, operatorUid, parentOf } from '#lib/uid.ts'
import { namesOf } from './identities.store.ts'

/**
 * What those are called who did something, by uid; a person without a name by their address, a push token by its maker.
 * Whoever is gone is not among them. Nobody's rights are looked at: what they did is told to those who may see it, and with
 * it who it was.
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
  // A push token stands below its maker.
  const below = uids.filter((uid) => isUid(uid) && !names.has(uid) && uid.includes('/'))
  await look(below.map(parentOf))
  for (const uid of below) {
    const maker = names.get(parentOf(uid))
    if (maker !== undefined) names.set(uid, `${maker}, push token`)
  }
  return names
}
