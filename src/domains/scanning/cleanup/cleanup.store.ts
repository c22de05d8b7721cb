// Queries that delete package lists that no image has, and packages that no list has.
import { exists } from '#db/bulk.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { type ListKey, listStates } from '../lists/lists.model.ts'

export type ListPage = ListKey & {
  listNo: number
  state: number
  createTime: string
  payer: string
  /** True if the ecosystems of the list's packages are stored. */
  hasEcosystems: boolean
  /** True if the list was compared but its findings were not counted. */
  isUncounted: boolean
}

/** Package lists after `after`, in order. */
export async function listsAfter(reader: Reader, after: number, most: number): Promise<ListPage[]> {
  type Row = Omit<ListPage, 'distribution' | 'isPlaced' | 'isUncounted'> & {
    id: string
    version: string
    listed: number
    uncounted: number
  }
  const rows = await reader.all<Row>(sql`
    SELECT id AS "listNo", hash, distribution AS id, distribution_version AS version, state, create_time AS "createTime",
           payer, CASE WHEN ecosystems = '' THEN 0 ELSE 1 END AS placed,
           CASE WHEN open_findings < 0 AND match_time <> '' THEN 1 ELSE 0 END AS uncounted
      FROM component_lists WHERE id > ${after} ORDER BY component_lists.id LIMIT ${most}`)
  return rows.map(({ id, version, listed, uncounted, ...row }) => {
    return { ...row, distribution: { id, version }, hasEcosystems: listed === 1, isUncounted: uncounted === 1 }
  })
}

/** Marks a list as deleted. An image with the same packages gets a new list from now on. */
export async function markListDeleted(tx: Tx, listNo: number): Promise<void> {
  await tx.run(sql`
    UPDATE component_lists
       SET state = ${listStates.gone}, hash = ${`gone ${listNo}`}, match_time = '', open_findings = -1
     WHERE id = ${listNo}`)
}

/**
 * Removes some packages from a list. Puts a package on hold if no other list contains it. Returns the number of removed packages.
 */
export async function emptyList(tx: Tx, listNo: number, most: number): Promise<number> {
  const rows = await tx.all<{ componentNo: number }>(sql`
    SELECT component_id AS "componentNo" FROM list_components WHERE list_id = ${listNo} ORDER BY component_id LIMIT ${most}`)
  const components = list(rows.map(({ componentNo }) => componentNo))
  if (rows.length === 0) return 0
  await tx.run(sql`DELETE FROM list_components WHERE list_id = ${listNo} AND component_id IN (${components})`)
  await tx.run(sql`
    UPDATE components SET held = 1
     WHERE id IN (${components})
       AND NOT EXISTS (SELECT 1 FROM list_components l WHERE l.component_id = components.id AND l.held = 0)`)
  return rows.length
}

/** Deletes a package list that has no packages any more. */
export async function deleteList(tx: Tx, listNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM list_severities WHERE list_id = ${listNo}`)
  await tx.run(sql`DELETE FROM list_limits WHERE list_id = ${listNo}`)
  await tx.run(sql`DELETE FROM resolved_later WHERE list_id = ${listNo}`)
  await tx.run(sql`DELETE FROM component_lists WHERE id = ${listNo}`)
}

/** Components on hold after `after`, in order. Each row states if any list contains the component. */
export async function componentsOnHoldAfter(
  reader: Reader,
  after: number,
  most: number,
): Promise<{ componentNo: number; isListed: boolean }[]> {
  const rows = await reader.all<{ componentNo: number; listed: number }>(sql`
    SELECT c.id AS "componentNo",
           CASE WHEN EXISTS (SELECT 1 FROM list_components l WHERE l.component_id = c.id) THEN 1 ELSE 0 END AS listed
      FROM components c WHERE c.held = 1 AND c.id > ${after} ORDER BY c.id LIMIT ${most}`)
  return rows.map(({ componentNo, listed }) => ({ componentNo, isListed: listed === 1 }))
}

export async function isListed(reader: Reader, componentNo: number): Promise<boolean> {
  return exists(reader, sql`FROM list_components WHERE component_id = ${componentNo}`)
}

export type DeletedFinding = { findingNo: number; affectedNo: number; organization: string; charged: number }

/**
 * Deletes some findings in a component. Also deletes suppressions and records that only these findings refer to. Returns the
 * deleted findings.
 */
export async function deleteFindings(tx: Tx, componentNo: number, most: number): Promise<DeletedFinding[]> {
  const found = await tx.all<DeletedFinding>(sql`
    SELECT id AS "findingNo", affected_id AS "affectedNo", place AS organization, charged FROM findings
     WHERE component_id = ${componentNo} ORDER BY component_id, id LIMIT ${most}`)
  if (found.length === 0) return []
  const findings = list(found.map(({ findingNo }) => findingNo))
  await tx.run(sql`DELETE FROM suppressions WHERE finding_id IN (${findings})`)
  await tx.run(sql`DELETE FROM findings WHERE id IN (${findings})`)
  await deleteUnreferenced(tx, [...new Set(found.map(({ affectedNo }) => affectedNo))])
  return found
}

/** Deletes former advisory entries and records that no finding refers to any more. */
async function deleteUnreferenced(tx: Tx, affected: readonly number[]): Promise<void> {
  const gone = await tx.all<{ recordNo: number }>(sql`
    DELETE FROM affected_packages
     WHERE id IN (${list(affected)}) AND until_time <> ''
       AND NOT EXISTS (SELECT 1 FROM findings f WHERE f.affected_id = affected_packages.id)
    RETURNING record_no AS "recordNo"`)
  if (gone.length === 0) return
  await tx.run(sql`
    DELETE FROM vulnerability_records
     WHERE id IN (${list([...new Set(gone.map(({ recordNo }) => recordNo))])}) AND until_time <> ''
       AND NOT EXISTS (SELECT 1 FROM affected_packages a WHERE a.record_no = vulnerability_records.id)`)
}

/**
 * Deletes some suppressions that the component causes as owner, and some pairs that contain the component. Returns the number of
 * deleted rows.
 */
export async function deleteTies(tx: Tx, componentNo: number, most: number): Promise<number> {
  const suppressed = await tx.run(sql`
    DELETE FROM suppressions WHERE id IN (
      SELECT s.id FROM suppressions s WHERE s.owner_id = ${componentNo} ORDER BY s.owner_id, s.id LIMIT ${most})`)
  const owned = await tx.run(sql`
    DELETE FROM owned_components WHERE owner_id = ${componentNo} AND component_id IN (
      SELECT p.component_id FROM owned_components p
       WHERE p.owner_id = ${componentNo} ORDER BY p.component_id LIMIT ${most})`)
  const owners = await tx.run(sql`
    DELETE FROM owned_components WHERE component_id = ${componentNo} AND owner_id IN (
      SELECT p.owner_id FROM owned_components p WHERE p.component_id = ${componentNo} ORDER BY p.owner_id LIMIT ${most})`)
  return suppressed + owned + owners
}

/** Deletes a component. Other tables must not refer to the component any more. */
export async function deleteComponent(tx: Tx, componentNo: number): Promise<void> {
  await tx.run(sql`DELETE FROM components WHERE id = ${componentNo}`)
}
