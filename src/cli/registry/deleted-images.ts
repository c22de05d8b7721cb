// Deleted repositories, which are found by their former path. The caller needs access to the audit log of the group.
import type { DeletedRepoJson } from '#gen/pinfold/control/registry/v1/ledgers_pb.ts'
import { isUid } from '#lib/uid.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure } from '../framework/cli-error.ts'
import { checkNamed } from '../framework/names.ts'
import type { Item } from '../framework/outputs.ts'

type DeletedRepo = Item & DeletedRepoJson

/**
 * Finds the deleted repository that had this path. Returns `undefined` if the caller can see none. If repositories with this path
 * were deleted several times in one group, returns the last one. If they were in different groups, throws an error with their uids.
 */
export async function findDeletedImage(
  list: ApiReader['list'],
  path: string,
): Promise<Pick<DeletedRepo, 'uid' | 'deleteTime'> | undefined> {
  if (!isUid(path)) checkNamed(path, 'repository')
  const query = isUid(path) ? { 'uidp.ids': path } : { path }
  const { items } = await list<DeletedRepo>('/registry/v2/deletedRepos', 'deletedRepos', query)
  const [last] = items
  if (new Set(items.map(({ group }) => group)).size < 2) return last
  const lines = items.map(({ uid, deleteTime }) => `${uid} (deleted on ${deleteTime})`)
  const message = `several deleted repositories had the path ${path}; give --deleted and the uid of one of them instead of the path:\n${lines.join('\n')}`
  throw failure(message)
}
