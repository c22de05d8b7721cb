import { countRows, listByUid } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { EmailDomain } from './email-domains.model.ts'

const columns = sql`t.uid, t.domain, t.token, t.verify_time AS "verifyTime", t.create_time AS "createTime"`

/** Inserts a domain. Returns false if the organization already has it. */
export async function insertDomain(
  tx: Tx,
  { uid, domain, token, verifyTime, createTime }: EmailDomain,
): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO email_domains (uid, parent_uid, domain, token, verify_time, create_time)
    VALUES (${uid}, ${parentOf(uid)}, ${domain}, ${token}, ${verifyTime}, ${createTime})
        ON CONFLICT (parent_uid, domain) DO NOTHING`)
  return inserted > 0
}

export async function findDomain(reader: Reader, uid: string): Promise<EmailDomain | undefined> {
  return reader.get<EmailDomain>(sql`SELECT ${columns} FROM email_domains t WHERE t.uid = ${uid}`)
}

/** Domain of the organization that has verified it. Undefined if there is none. */
export async function findVerified(reader: Reader, domain: string): Promise<EmailDomain | undefined> {
  return reader.get<EmailDomain>(
    sql`SELECT ${columns} FROM email_domains t WHERE t.domain = ${domain} AND t.verify_time <> ''`,
  )
}

/** Sets the time of the verification. Empty text removes the verification. */
export async function setVerified(tx: Tx, uid: string, time: string): Promise<void> {
  await tx.run(sql`UPDATE email_domains SET verify_time = ${time} WHERE uid = ${uid}`)
}

/** Deletes a domain. Returns false if it was already deleted. */
export async function deleteDomain(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM email_domains WHERE uid = ${uid}`)) > 0
}

export async function countDomains(reader: Reader, organization: string): Promise<number> {
  return countRows(reader, sql`FROM email_domains t WHERE t.parent_uid = ${organization}`)
}

export const domainList = listByUid(
  { table: 'email_domains', columns },
  (organization: string) => sql`t.parent_uid = ${organization}`,
  (row: EmailDomain) => row,
)
