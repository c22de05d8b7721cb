import { type Reader, sql } from '#db/sql.ts'

/** The names of the builds after this one of the same version, of which there are no more than `most`. */
export async function laterEpochs(reader: Reader, repo: number, prefix: string, after: string, most: number) {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM tags
     WHERE repo_id = ${repo} AND name > ${prefix} AND name < ${`${prefix}:`} AND length(name) >= ${after.length}
       AND name <> ${after} AND digest <> ''
     ORDER BY length(name) DESC, name DESC LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

/** What a duty needs of a tag. */
export type JudgedTag = {
  uid: string
  repo: number
  name: string
  digest: string
  deprecated: boolean
  inactive: boolean
}

/** Those behind `after` by their uids. */
export async function tagsAfter(reader: Reader, after: string, most: number): Promise<JudgedTag[]> {
  const rows = await reader.all<Omit<JudgedTag, 'deprecated' | 'inactive'> & { deprecated: number; inactive: number }>(
    sql`SELECT uid, repo_id AS repo, name, digest, deprecated, inactive FROM tags
         WHERE uid > ${after} ORDER BY uid LIMIT ${most}`,
  )
  return rows.map((row) => ({ ...row, deprecated: row.deprecated === 1, inactive: row.inactive === 1 }))
}
