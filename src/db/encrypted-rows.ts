// Rows that are encrypted with the master key. Checks whether a key decrypts them, and encrypts them with another key.

import { type EncryptedColumn, encryptedColumns, type Purpose } from '#lib/crypto/encrypted-columns.ts'
import type { SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { hasTable } from './migrate.ts'
import { type Db, ident, type Reader, sql, type Tx } from './sql.ts'

const columns = Object.entries(encryptedColumns).flatMap(([purpose, some]) => {
  return some.map((column: EncryptedColumn) => ({ ...column, purpose: purpose as Purpose }))
})
const perRead = 200

/** Error for a value that the given key cannot decrypt. */
export class WrongMasterKey extends Error {
  override name = 'WrongMasterKey'
}

type Sealed = { key: string; sealed: Uint8Array }

function read(
  reader: Reader,
  { table, key, column }: EncryptedColumn,
  after: string,
  limit: number,
): Promise<Sealed[]> {
  const [name, value] = [ident(key), ident(column)]
  return reader.all(sql`
    SELECT ${name} AS "key", ${value} AS "sealed" FROM ${ident(table)}
     WHERE ${name} > ${after} AND ${value} IS NOT NULL AND length(${value}) > 0
     ORDER BY ${name} LIMIT ${limit}`)
}

/**
 * True if the key decrypts the first row of each column. Undefined if no row is encrypted. Also works with the schema of an
 * earlier version.
 */
export async function opensRows(db: Db, cipher: SecretCipher): Promise<boolean | undefined> {
  let answer: boolean | undefined
  for (const column of columns) {
    if (!(await hasTable(db, column.table))) continue
    const [row] = await read(db, column, '', 1)
    if (!row) continue
    if (!cipher.decrypt(column.purpose, row.sealed)) return false
    answer = true
  }
  return answer
}

/** Encrypts all values with the key `to`, and returns their number. Throws WrongMasterKey if `from` cannot decrypt one of them. */
export async function reencryptRows(tx: Tx, from: SecretCipher, to: SecretCipher): Promise<number> {
  let count = 0
  for (const column of columns) {
    const { table, key, column: name, purpose } = column
    for (let after = ''; ; ) {
      const rows = await read(tx, column, after, perRead)
      for (const row of rows) {
        const plain = from.decrypt(purpose, row.sealed)
        if (!plain) throw new WrongMasterKey(`${table}.${name} of ${row.key} is encrypted with another master key`)
        await tx.run(sql`
          UPDATE ${ident(table)} SET ${ident(name)} = ${to.encrypt(purpose, plain)} WHERE ${ident(key)} = ${row.key}`)
      }
      count += rows.length
      if (rows.length < perRead) break
      after = rows.at(-1)!.key
    }
  }
  return count
}
