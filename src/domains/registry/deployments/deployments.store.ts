import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { HelmChart } from './deployments.model.ts'

/** Charts of the repository. Returns undefined if it has no deployment. */
export async function findCharts(reader: Reader, repo: string): Promise<HelmChart[] | undefined> {
  const row = await reader.get<{ charts: string }>(sql`SELECT charts FROM deployments WHERE repo_uid = ${repo}`)
  return row && (JSON.parse(row.charts) as HelmChart[])
}

/** Inserts a deployment. Returns false if the repository already has one. */
export async function insertCharts(tx: Tx, repo: string, charts: readonly HelmChart[]): Promise<boolean> {
  const inserted = await tx.run(sql`
    INSERT INTO deployments (repo_uid, charts) VALUES (${repo}, ${JSON.stringify(charts)})
        ON CONFLICT (repo_uid) DO NOTHING`)
  return inserted === 1
}

/** Replaces the charts of a deployment. Returns false if the repository has no deployment. */
export async function patchCharts(tx: Tx, repo: string, charts: readonly HelmChart[]): Promise<boolean> {
  const patched = await tx.run(sql`
    UPDATE deployments SET charts = ${JSON.stringify(charts)} WHERE repo_uid = ${repo}`)
  return patched === 1
}

/** Deletes a deployment. Returns false if the repository has none. */
export async function deleteCharts(tx: Tx, repo: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM deployments WHERE repo_uid = ${repo}`)) === 1
}
