// Organizations of a user, and folders of organizations that the user cannot see.
import { readPage } from './list.ts'
import { namesOfGroup, parentOf } from './names.ts'
import type { Group } from './types.ts'

/** Groups whose parent the user cannot see. Only the user's first two hundred groups are checked. */
export async function readTopGroups(signal: AbortSignal): Promise<{ group: Group; names: readonly string[] }[]> {
  const { items } = await readPage<Group>('/iam/v2/groups', 'groups', { size: 200, signal })
  const uids = new Set(items.map(({ uid }) => uid))
  const tops = items.filter(({ uid }) => !uids.has(parentOf(uid)))
  return Promise.all(tops.map(async (group) => ({ group, names: await namesOfGroup(group.uid) })))
}
