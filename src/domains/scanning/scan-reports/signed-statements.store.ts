import { allOf, atMost, exists } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'

/**
 * Statement of a signer about a vulnerability in an image, or in one package of the image. `statementTime` is the time in the
 * document.
 */
export type SignedStatement = {
  vulnerability: string
  package: string
  status: string
  stated: string
  /** ID of the statement in lists of statements. */
  statement: string
  statementTime: string
}

export type ImageIn = { repoUid: string; digest: string }
/** A statement that is in force now. */
export type ActiveStatement = SignedStatement & { id: number }

/** Statements of a signer about some vulnerabilities in an image that are in force. */
export async function activeStatements(
  reader: Reader,
  { repoUid, digest }: ImageIn,
  signer: string,
  vulnerabilities: readonly string[],
): Promise<ActiveStatement[]> {
  const inForce = (some: readonly string[]) => sql`
    SELECT id, vulnerability, package, status, stated, statement, said_time AS "statementTime" FROM signed_statements
     WHERE repo_uid = ${repoUid} AND digest = ${digest} AND signer_uid = ${signer} AND until_time = ''
       AND vulnerability IN (${list(some)})`
  return allOf(reader, vulnerabilities, inForce)
}

/** Number of present and former signed statements of an image, at most `most`. */
export async function countSigned(reader: Reader, { repoUid, digest }: ImageIn, most: number): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 AS found FROM signed_statements WHERE repo_uid = ${repoUid} AND digest = ${digest} LIMIT ${most}) matches`)
  return row?.count ?? 0
}

export async function insertSigned(
  tx: Tx,
  { repoUid, digest }: ImageIn,
  signer: string,
  one: SignedStatement,
  now: string,
): Promise<number> {
  const { vulnerability, status, stated, statement, statementTime } = one
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO signed_statements (repo_uid, digest, vulnerability, package, signer_uid, status, stated, statement,
                                   said_time, from_time)
    VALUES (${repoUid}, ${digest}, ${vulnerability}, ${one.package}, ${signer}, ${status}, ${stated}, ${statement},
            ${statementTime}, ${now}) RETURNING id`)
  return row!.id
}

/** Stores the new time of a statement that the signer has repeated. */
export async function noteStatementTime(tx: Tx, id: number, statementTime: string): Promise<void> {
  await tx.run(sql`UPDATE signed_statements SET said_time = ${statementTime} WHERE id = ${id}`)
}

export async function endSigned(tx: Tx, id: number, now: string): Promise<void> {
  await tx.run(sql`UPDATE signed_statements SET until_time = ${now} WHERE id = ${id}`)
}

/** A present or former statement that hides findings, with its signer. */
export type IgnoringStatement = {
  vulnerability: string
  package: string
  stated: string
  fromTime: string
  untilTime: string
  signer: { uid: string; name: string; actor: string; endTime: string; expireTime: string }
}

type HidingRow = Omit<IgnoringStatement, 'signer'> & IgnoringStatement['signer']

/** Present and former statements of an image that say "not affected" or "fixed" for some vulnerabilities. */
export async function ignoringStatementsOf(
  reader: Reader,
  { repoUid, digest }: ImageIn,
  vulnerabilities: readonly string[],
): Promise<IgnoringStatement[]> {
  const hiding = (some: readonly string[]) => sql`
    SELECT s.vulnerability, s.package, s.stated, s.from_time AS "fromTime", s.until_time AS "untilTime",
           t.uid, t.name, t.actor, t.end_time AS "endTime", t.expire_time AS "expireTime"
      FROM signed_statements s JOIN vex_signers t ON t.uid = s.signer_uid
     WHERE s.repo_uid = ${repoUid} AND s.digest = ${digest} AND s.status IN ('not_affected', 'fixed')
       AND s.vulnerability IN (${list(some)}) ORDER BY s.id`
  const rows = await allOf<HidingRow, string>(reader, vulnerabilities, hiding)
  return rows.map(({ uid, name, actor, endTime, expireTime, ...statement }) => {
    return { ...statement, signer: { uid, name, actor, endTime, expireTime } }
  })
}

/** True if a signer has ever made a statement on an image of the repository. */
export async function hasSigned(reader: Reader, repoUid: string): Promise<boolean> {
  return exists(reader, sql`FROM signed_statements WHERE repo_uid = ${repoUid}`)
}

/** Deletes at most `limit` signed statements of a repository. Returns their number. */
export async function deleteSignedOf(tx: Tx, repoUid: string, limit: number): Promise<number> {
  const some = atMost(limit, 'signed_statements', 'id', sql`repo_uid = ${repoUid}`)
  return tx.run(sql`DELETE FROM signed_statements WHERE ${some}`)
}

/**
 * Deletes the signed statements of a deleted image. Returns their number. Keeps current statements of "affected" or "under
 * investigation". Otherwise an older document that is pushed again with the image could hide findings.
 */
export async function deleteSignedOfImage(tx: Tx, repoUid: string, digest: string): Promise<number> {
  return tx.run(sql`
    DELETE FROM signed_statements
     WHERE repo_uid = ${repoUid} AND digest = ${digest} AND (status IN ('not_affected', 'fixed') OR until_time <> '')`)
}

/** The next image after the given one that has signed statements. Also states if the repository still has the image. */
export async function nextSigned(
  reader: Reader,
  after: ImageIn,
): Promise<(ImageIn & { isThere: boolean }) | undefined> {
  const row = await reader.get<ImageIn & { found: number }>(sql`
    SELECT s.repo_uid AS "repoUid", s.digest, CASE WHEN ${isThere} THEN 1 ELSE 0 END AS found
      FROM signed_statements s
     WHERE (s.repo_uid, s.digest) > (${after.repoUid}, ${after.digest}) ORDER BY s.repo_uid, s.digest LIMIT 1`)
  return row && { repoUid: row.repoUid, digest: row.digest, isThere: row.found === 1 }
}

/** Deletes some statements of an image or repository that no longer exists. Returns their number. */
export async function deleteSignedOfDeleted(tx: Tx, { repoUid, digest }: ImageIn, most: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM signed_statements
     WHERE id IN (SELECT s.id FROM signed_statements s
                   WHERE s.repo_uid = ${repoUid} AND s.digest = ${digest} AND NOT ${isThere}
                     AND (s.status IN ('not_affected', 'fixed') OR s.until_time <> ''
                          OR NOT EXISTS (SELECT 1 FROM repos r WHERE r.uid = s.repo_uid))
                   LIMIT ${most})`)
}

const isThere = sql`
  EXISTS (SELECT 1 FROM repos r JOIN manifests m ON m.repo_id = r.id WHERE r.uid = s.repo_uid AND m.digest = s.digest)`
