// Helm charts that deploy the images of a repository. A deployment has at least one chart.

import type { Call } from '#app.ts'
import { alreadyExists, found, invalid, notFound, refuseIfAny } from '#lib/errors.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { deploymentType, type HelmChart, problemsOf } from './deployments.model.ts'
import * as store from './deployments.store.ts'

export async function getDeployment(call: Call, repo: string): Promise<HelmChart[]> {
  return found(await store.findCharts(call.app.db, repo), deploymentType, repo)
}

export async function createDeployment(call: Call, repo: string, charts: readonly HelmChart[]): Promise<void> {
  if (charts.length === 0) throw invalid({ field: 'charts', description: 'is required' })
  refuseIfAny(problemsOf(charts))
  await call.app.db.tx(async (tx) => {
    found(await findRepoRow(tx, { uid: repo }), repoType, repo)
    if (!(await store.insertCharts(tx, repo, charts))) {
      throw alreadyExists(deploymentType, repo, 'the repo has a deployment')
    }
  })
  call.log.info('deployment created', { repo, charts: charts.length })
}

/** Replaces the charts. Without charts, deletes the deployment. */
export async function replaceDeployment(call: Call, repo: string, charts: readonly HelmChart[]): Promise<void> {
  refuseIfAny(problemsOf(charts))
  await call.app.db.tx(async (tx) => {
    const isThere = await (charts.length > 0 ? store.patchCharts(tx, repo, charts) : store.deleteCharts(tx, repo))
    if (!isThere) throw notFound(deploymentType, repo)
  })
  call.log.info('deployment replaced', { repo, charts: charts.length })
}
