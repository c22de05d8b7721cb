// Compares the stored usage of organizations with the content of their repositories.
import assert from 'node:assert/strict'
import { sql } from '#db/sql.ts'
import type { Pinfold } from './pinfold.ts'

type Row = { org: string; bytes: number; uploads: number; uploadBytes: number }

/** Fails if the stored usage of an organization differs from a recount. Returns the recount. */
export async function checkUsage({ app: { db } }: Pick<Pinfold, 'app'>): Promise<Map<string, Omit<Row, 'org'>>> {
  const recount = new Map<string, Omit<Row, 'org'>>()
  const add = (uid: string, more: Partial<Row>): void => {
    const org = uid.slice(0, 40)
    const { bytes = 0, uploads = 0, uploadBytes = 0 } = recount.get(org) ?? {}
    recount.set(org, {
      bytes: bytes + Number(more.bytes ?? 0),
      uploads: uploads + Number(more.uploads ?? 0),
      uploadBytes: uploadBytes + Number(more.uploadBytes ?? 0),
    })
  }
  type Link = { uid: string; digest: string; size: number }
  const links = await db.all<Link>(sql`
    SELECT r.uid, b.digest, b.size FROM repo_blobs l JOIN repos r ON r.id = l.repo_id JOIN blobs b ON b.digest = l.digest`)
  const linked = new Map<string, number>()
  for (const { uid, digest, size } of links) {
    const key = `${uid.slice(0, 40)} ${digest}`
    if (!linked.has(key)) add(uid, { bytes: size })
    linked.set(key, (linked.get(key) ?? 0) + 1)
  }
  const manifests = await db.all<{ uid: string; content: Uint8Array }>(sql`
    SELECT r.uid, m.content FROM manifests m JOIN repos r ON r.id = m.repo_id`)
  for (const { uid, content } of manifests) add(uid, { bytes: content.length })
  const reports = await db.all<{ uid: string; size: number }>(sql`
    SELECT r.uid, s.size FROM scan_reports s JOIN repos r ON r.id = s.repo_id WHERE s.size > 0`)
  for (const { uid, size } of reports) add(uid, { bytes: Number(size) })
  const signed = await db.all<{ uid: string; rows: number }>(sql`
    SELECT repo_uid AS uid, count(*) AS rows FROM signed_statements GROUP BY repo_uid`)
  for (const { uid, rows } of signed) add(uid, { bytes: Number(rows) * 1024 })
  const lists = await db.all<{ uid: string; charged: number }>(sql`
    SELECT payer AS uid, charged FROM component_lists WHERE payer <> ''`)
  for (const { uid, charged } of lists) add(uid, { bytes: Number(charged) })
  const own = await db.all<{ uid: string; charged: number }>(sql`
    SELECT place AS uid, charged FROM findings WHERE place <> ''`)
  for (const { uid, charged } of own) add(uid, { bytes: Number(charged) })
  const uploads = await db.all<{ uid: string; upload: string; size: number; parts: number }>(sql`
    SELECT r.uid, u.uid AS upload, u.size, u.parts FROM uploads u JOIN repos r ON r.id = u.repo_id`)
  for (const { uid, upload, size, parts } of uploads) {
    add(uid, { uploads: 1, uploadBytes: size })
    const pieces = await db.all<{ size: number }>(sql`SELECT size FROM upload_parts WHERE upload_uid = ${upload}`)
    assert.deepEqual([pieces.length, pieces.reduce((sum, one) => sum + Number(one.size), 0)], [parts, size])
  }

  const counted = await db.all<Row>(sql`
    SELECT org_uid AS org, CAST(sum(bytes) AS BIGINT) AS bytes, CAST(sum(uploads) AS BIGINT) AS uploads,
           CAST(sum(upload_bytes) AS BIGINT) AS "uploadBytes" FROM organization_usage GROUP BY org_uid`)
  const some = counted.filter(({ bytes, uploads, uploadBytes }) => bytes !== 0 || uploads !== 0 || uploadBytes !== 0)
  assert.deepEqual(new Map(some.map(({ org, ...used }) => [org, used])), recount)
  const shared = await db.all<{ org: string; digest: string; links: number }>(sql`
    SELECT org_uid AS org, digest, links FROM organization_blobs`)
  assert.deepEqual(new Map(shared.map(({ org, digest, links }) => [`${org} ${digest}`, links])), linked)
  return recount
}
