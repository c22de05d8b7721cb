import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { AccountAssociation, Accounts } from './account-associations.model.ts'

type Row = Omit<AccountAssociation, keyof Accounts> & { accounts: string; group: string }

const columns = sql`
  t.uid, t.uid AS "group", t.name, t.description, t.accounts,
  t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'account_associations'
const listing: Listing = { kind, table: kind, columns }

function fromRow({ accounts, group, ...row }: Row): AccountAssociation {
  return { ...row, ...(JSON.parse(accounts) as Accounts) }
}

function accountsText({ amazon, google, azure, github, pinfold }: AccountAssociation): string {
  return JSON.stringify({ amazon, google, azure, github, pinfold })
}

const keysOf = ({ name, createTime, updateTime }: AccountAssociation): Keys => ({
  name,
  create_time: createTime,
  update_time: updateTime,
})

export async function findAssociation(reader: Reader, group: string): Promise<AccountAssociation | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM account_associations t WHERE t.uid = ${group}`)
  return row && fromRow(row)
}

export type AssociationFilter = { name: string }

export const associationList = nodeList(listing, fromRow, conditions)

function conditions(filter: AssociationFilter): Sql[] {
  return filter.name === '' ? [] : [sql`t.name = ${filter.name}`]
}

/** `false` when the group has one. */
export async function insertAssociation(tx: Tx, association: AccountAssociation): Promise<boolean> {
  const { uid, name, description, createTime, updateTime } = association
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO account_associations (uid, parent_uid, name, description, accounts, create_time, update_time)
    VALUES (${uid}, ${parentOf(uid)}, ${name}, ${description}, ${accountsText(association)}, ${createTime}, ${updateTime})
        ON CONFLICT (uid) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, uid, row.id, keysOf(association))
  return true
}

export async function patchAssociation(tx: Tx, before: AccountAssociation, after: AccountAssociation): Promise<void> {
  await tx.run(sql`
    UPDATE account_associations
       SET name = ${after.name}, description = ${after.description}, accounts = ${accountsText(after)},
           update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

export async function deleteAssociation(tx: Tx, association: AccountAssociation): Promise<void> {
  await tx.run(sql`DELETE FROM account_associations WHERE uid = ${association.uid}`)
  await removeFromLists(tx, kind, association.uid, keysOf(association))
}
