// Version 1 of images: their properties from manifests and configurations, and their contents.

import type { Handlers } from '#app.ts'
import { ImageConfigSchema, ManifestMetadataListSchema } from '#gen/pinfold/registry/v1/images_pb.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { ComponentGraph_Edge_Type, type Sbom2, Sbom2_Source, Sbom2Schema } from '#gen/pinfold/tenant/v1/sboms_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { countManifests } from '../manifests/manifests.service.ts'
import { defaultArchitecture } from './images.model.ts'
import * as service from './images.service.ts'
import { getRawSbom, getSbom, listPackages, type Sbom } from './sboms.service.ts'

const toConfig = messageOf(ImageConfigSchema)
const toMetadata = messageOf(ManifestMetadataListSchema)
const toSbom2 = messageOf(Sbom2Schema)

export const imagesV1: Handlers<typeof Registry> = {
  async getArchs(call, { repoId, digest }) {
    const archs = await service.getArchitectures(call, repoId, digest)
    return { $typeName: 'pinfold.platform.registry.Archs', archs }
  },

  async getSize(call, request) {
    const { repoId, digest } = request
    const arch = request.arch || defaultArchitecture
    const size = await service.getSize(call, repoId, digest, arch)
    return { $typeName: 'pinfold.platform.registry.Size', size: BigInt(size), arch }
  },

  // The request field `registry` has no effect: stored image data and the registry give the same answer.
  async getImageConfig(call, { repoId, digest, arch }) {
    const config = await service.getConfig(call, repoId, digest, arch || defaultArchitecture)
    return toConfig({ ...config, exposedPorts: keyedBy(config.exposedPorts), volumes: keyedBy(config.volumes) })
  },

  async getSbom(call, { repoId, digest, arch }) {
    return toSbom(await getSbom(call, repoId, digest, arch || defaultArchitecture))
  },

  async getRawSbom(call, { repoId, digest, arch }) {
    const rawSbom = await getRawSbom(call, repoId, digest, arch || defaultArchitecture)
    return { $typeName: 'pinfold.platform.registry.RawSbom', rawSbom }
  },

  async listManifestMetadata(call, { repoId, items }) {
    const names = items.map(({ filter }) => {
      if (filter.case === 'imageDigest') return { digest: filter.value }
      return { digest: filter.value?.digest ?? '', architecture: filter.value?.arch || defaultArchitecture }
    })
    const found = await listPackages(call, repoId, names)
    const listed = found.map(({ digest, packages }) => {
      return { digest, pkgMetadata: packages.map(({ purl, originPurl }) => ({ purl, originPurl, license: '' })) }
    })
    return toMetadata({ items: listed })
  },

  async getManifestDigestCount(call, { parentId }) {
    const count = BigInt(await countManifests(call, parentId))
    return { $typeName: 'pinfold.platform.registry.ManifestDigestCount', count }
  },
}

/** SBOM in the format of version 1. It has the pushed document, or only the packages if no SBOM was pushed. */
function toSbom({ image, document, graph }: Sbom): Sbom2 {
  const { packages, files, edges, ...rest } = graph
  const created = parseTimestamp(graph.created)
  const nodes = [
    ...packages.map((value) => ({ case: 'package', value }) as const),
    ...files.map((value) => ({ case: 'file', value }) as const),
  ]
  return toSbom2({
    ...rest,
    id: image,
    rawSbom: Uint8Array.from(document?.bytes ?? []),
    graph: {
      nodes: nodes.map((typedNode) => ({ typedNode })),
      edges: edges.map(({ subject, predicate, type }) => {
        return { subjectId: subject, predicateId: predicate, type: ComponentGraph_Edge_Type[type] }
      }),
    },
    generatedAt: created && toIso(created),
    source: document ? Sbom2_Source.INGESTED : Sbom2_Source.GENERATED,
    description: '',
    digest: document?.digest,
  })
}

/** Map for a field of version 1 of which only the keys are known. The values are empty. */
function keyedBy(keys: readonly string[]): Record<string, object> {
  return Object.fromEntries(keys.map((key) => [key, {}]))
}
