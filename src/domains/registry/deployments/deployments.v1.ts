import type { Handlers } from '#app.ts'
import type { HelmChart as ChartMessage, Deployment } from '#gen/pinfold/registry/v1/deployments_pb.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import type { HelmChart } from './deployments.model.ts'
import * as service from './deployments.service.ts'

export const deploymentsV1: Handlers<typeof Registry> = {
  async createDeployment(call, { parentId, charts }) {
    await service.createDeployment(call, parentId, charts.map(fromMessage))
    return toMessage(parentId, charts)
  },

  async updateDeployment(call, { repoId, charts }) {
    await service.replaceDeployment(call, repoId, charts.map(fromMessage))
    return toMessage(repoId, charts)
  },

  async getDeployment(call, { repoId }) {
    return toMessage(repoId, await service.getDeployment(call, repoId))
  },
}

function fromMessage({ source, repo, chart }: ChartMessage): HelmChart {
  return { source, repo, chart }
}

function toMessage(id: string, charts: readonly HelmChart[]): Deployment {
  const shown = charts.map(({ source, repo, chart }): ChartMessage => {
    const optional = { ...(source === undefined ? {} : { source }), ...(chart === undefined ? {} : { chart }) }
    return { $typeName: 'pinfold.platform.registry.HelmChart', repo, ...optional }
  })
  return { $typeName: 'pinfold.platform.registry.Deployment', id, charts: shown }
}
