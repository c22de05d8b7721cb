import { namedNodes, nodeTable } from '#db/node-table.ts'
import { sql, type Tx } from '#db/sql.ts'
import type { AccountAssociation, Accounts } from './account-associations.model.ts'

type Row = Omit<AccountAssociation, keyof Accounts> & { accounts: string; group: string }

const columns = sql`
  t.uid, t.uid AS "group", t.name, t.description, t.accounts,
  t.create_time AS "createTime", t.update_time AS "updateTime"`
function fromRow({ accounts, group, ...row }: Row): AccountAssociation {
  return { ...row, ...(JSON.parse(accounts) as Accounts) }
}

function accountsText({ amazon, google, azure, github, pinfold }: AccountAssociation): string {
  return JSON.stringify({ amazon, google, azure, github, pinfold })
}

export type AssociationFilter = { name: string }

const associations = nodeTable({ table: 'account_associations', columns, ...namedNodes, unique: ['uid'] }, fromRow)

export const { list: associationList, find: findAssociation, delete: deleteAssociation } = associations

const valuesOf = (association: AccountAssociation) => ({
  name: association.name,
  description: association.description,
  accounts: accountsText(association),
  update_time: association.updateTime,
})

/** Inserts an association. Returns false if the group already has one. */
export function insertAssociation(tx: Tx, association: AccountAssociation): Promise<boolean> {
  return associations.insert(tx, association, { ...valuesOf(association), create_time: association.createTime })
}

export async function patchAssociation(tx: Tx, before: AccountAssociation, after: AccountAssociation): Promise<void> {
  await associations.update(tx, before, after, valuesOf(after))
}
