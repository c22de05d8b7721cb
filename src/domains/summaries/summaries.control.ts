import type { Handlers } from '#app.ts'
import { toCoverage } from '#domains/scanning/reports/coverage.control.ts'
import {
  DryRunOverviewSchema,
  ImageLayersSchema,
  ImageOverviewSchema,
  ImageSummariesSchema,
  ScopeSummariesSchema,
  type SummariesService,
  TagUpdatesSchema,
} from '#gen/pinfold/control/summaries/v1/summaries_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { getDryRunOverview } from './dry-run-overview.service.ts'
import { getImageLayers } from './image-layers.service.ts'
import { getImageOverview } from './image-overview.service.ts'
import { getImageSummaries, type ImageSummary } from './image-summaries.service.ts'
import { getScopeSummaries } from './scope-summaries.service.ts'
import { getTagUpdates } from './tag-updates.service.ts'

const toSummaries = messageOf(ImageSummariesSchema)
const toLayers = messageOf(ImageLayersSchema)
const toScopes = messageOf(ScopeSummariesSchema)
const toOverview = messageOf(ImageOverviewSchema)
const toDryRun = messageOf(DryRunOverviewSchema)
const toUpdates = messageOf(TagUpdatesSchema)

export const summaries: Handlers<typeof SummariesService> = {
  async getImageSummaries(call, { repoUid, digests }) {
    return toSummaries({ images: (await getImageSummaries(call, repoUid, digests)).map(toImage) })
  },

  async getImageLayers(call, request) {
    const { repoUid, digest, architecture } = request
    const { config, info, steps, ...image } = await getImageLayers(call, repoUid, digest, architecture)
    return toLayers({
      ...{ ...image, ...info, ...config },
      steps: steps.map(({ command, layer }) => ({
        command,
        ...(layer ? { digest: layer.digest, mediaType: layer.mediaType, size: layer.size } : noLayer),
      })),
    })
  },

  async getImageOverview(call, { group }) {
    return toOverview(await getImageOverview(call, group))
  },

  async getTagUpdates(call, { group, limit }) {
    const updates = await getTagUpdates(call, group, limit)
    return toUpdates({
      updates: updates.map(({ counted, before, ...update }) => ({
        ...update,
        vulnerabilities: counted?.counts,
        coverage: counted && toCoverage(counted.coverage),
        previousVulnerabilities: before?.counts,
      })),
    })
  },

  async getDryRunOverview(call, { group }) {
    return toDryRun(await getDryRunOverview(call, group))
  },

  async getScopeSummaries(call, { uids }) {
    const found = await getScopeSummaries(call, uids)
    return toScopes({
      scopes: found.map(({ newestImage, ...scope }) => ({
        ...scope,
        newestImage: newestImage && toImage(newestImage),
      })),
    })
  },
}

const noLayer = { digest: '', mediaType: '', size: 0 }

function toImage({ bytes, vulnerabilities, platforms, tags, ...image }: ImageSummary) {
  return {
    ...{ ...image, platforms: [...platforms], tags: [...tags] },
    size: bytes,
    vulnerabilities: vulnerabilities?.counts,
    coverage: vulnerabilities && toCoverage(vulnerabilities.coverage),
  }
}
