import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'

/** The package that an image is about; the texts are empty where nothing is known. */
export type StoredMain = {
  digest: string
  basis: string
  name: string
  version: string
  product: string
  cycle: string
}

/** Of the digests those that were looked into. */
export async function findMains(reader: Reader, repo: number, digests: readonly string[]): Promise<StoredMain[]> {
  return reader.all<StoredMain>(sql`
    SELECT digest, basis, name, version, product, cycle FROM main_packages
     WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
}

/** Does nothing for a repo that has gone meanwhile. */
export async function saveMains(tx: Tx, repo: number, mains: readonly StoredMain[]): Promise<void> {
  const isThere = await tx.get(sql`SELECT 1 AS found FROM repos WHERE id = ${repo}`)
  if (!isThere || mains.length === 0) return
  const rows = mains.map((one) => {
    return sql`(${repo}, ${one.digest}, ${one.basis}, ${one.name}, ${one.version}, ${one.product}, ${one.cycle})`
  })
  await tx.run(sql`
    INSERT INTO main_packages (repo_id, digest, basis, name, version, product, cycle) VALUES ${join(rows, ', ')}
        ON CONFLICT (repo_id, digest) DO UPDATE SET basis = excluded.basis, name = excluded.name,
           version = excluded.version, product = excluded.product, cycle = excluded.cycle`)
}
