import { addToLists, type Keys, type Listing, nodeList, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { DeletedRepo, DeletedRepoFilter } from './removals.model.ts'

const columns = sql`
  t.uid, t.id, t.ledger_id AS ledger, t.path, t.actor, t.create_time AS "createTime", t.delete_time AS "deleteTime"`
const kind = 'deleted_repos'
const listing: Listing = { kind, table: 'deleted_repos', columns }
const keysOf = ({ deleteTime }: DeletedRepo): Keys => ({ delete_time: deleteTime })

/**
 * Number of the tag history for this name in the group. If no earlier repository had the name, creates a tag history with the
 * number of `repo`.
 */
export async function openLedger(tx: Tx, repo: number, group: string, name: string): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO ledgers (id, group_uid, name) VALUES (${repo}, ${group}, ${name})
        ON CONFLICT (group_uid, name) DO UPDATE SET name = excluded.name
    RETURNING id`)
  return row!.id
}

export async function deleteLedger(tx: Tx, ledger: number): Promise<void> {
  await tx.run(sql`DELETE FROM ledgers WHERE id = ${ledger}`)
}

/** Uid of the repository that writes to the tag history, even if the repository is being removed. Empty if there is none. */
export async function writerOf(reader: Reader, ledger: number): Promise<string> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT uid FROM repos WHERE ledger_id = ${ledger} UNION ALL SELECT uid FROM repo_removals WHERE ledger_id = ${ledger}`)
  return row?.uid ?? ''
}

export async function insertDeletedRepo(tx: Tx, repo: DeletedRepo): Promise<void> {
  await tx.run(sql`
    INSERT INTO deleted_repos (id, uid, parent_uid, ledger_id, path, actor, create_time, delete_time)
    VALUES (${repo.id}, ${repo.uid}, ${parentOf(repo.uid)}, ${repo.ledger}, ${repo.path}, ${repo.actor},
            ${repo.createTime}, ${repo.deleteTime})`)
  await addToLists(tx, kind, repo.uid, repo.id, keysOf(repo))
}

export async function deleteDeletedRepo(tx: Tx, repo: DeletedRepo): Promise<void> {
  await tx.run(sql`DELETE FROM deleted_repos WHERE uid = ${repo.uid}`)
  await removeFromLists(tx, kind, repo.uid, keysOf(repo))
}

export async function findDeletedRepo(reader: Reader, uid: string): Promise<DeletedRepo | undefined> {
  return reader.get<DeletedRepo>(sql`SELECT ${columns} FROM deleted_repos t WHERE t.uid = ${uid}`)
}

/** Deleted repositories that wrote to a tag history. */
export async function deletedReposOf(reader: Reader, ledger: number): Promise<DeletedRepo[]> {
  return reader.all<DeletedRepo>(
    sql`SELECT ${columns} FROM deleted_repos t WHERE t.ledger_id = ${ledger} ORDER BY t.uid`,
  )
}

export const deletedRepoList = nodeList(listing, (row: DeletedRepo) => row, conditions)

function conditions({ path }: DeletedRepoFilter): Sql[] {
  return path === '' ? [] : [sql`t.path = ${path}`]
}
