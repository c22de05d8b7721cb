// Version 1 of images: what manifests and configurations say of them, and what is in them.

import type { Handlers } from '#app.ts'
import type { ManifestMetadata } from '#gen/pinfold/registry/v1/images_pb.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { ComponentGraph_Edge_Type, type Sbom2, Sbom2_Source } from '#gen/pinfold/tenant/v1/sboms_pb.ts'
import { parseTimestamp, timestamp, toIso } from '#lib/timestamp.ts'
import { countManifests } from '../manifests/manifests.service.ts'
import { defaultArchitecture } from './images.model.ts'
import * as service from './images.service.ts'
import { getRawSbom, getSbom, type ImagePackages, listPackages, type Sbom } from './sboms.service.ts'

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

  // Nothing is kept about an image that the registry does not have, so it makes no difference where it is read from.
  async getImageConfig(call, { repoId, digest, arch }) {
    const config = await service.getConfig(call, repoId, digest, arch || defaultArchitecture)
    return {
      $typeName: 'pinfold.platform.registry.ImageConfig',
      ...config,
      exposedPorts: keyedBy(config.exposedPorts, 'pinfold.platform.registry.ImageConfig.ExposedPort'),
      volumes: keyedBy(config.volumes, 'pinfold.platform.registry.ImageConfig.Volume'),
    }
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
    return { $typeName: 'pinfold.platform.registry.ManifestMetadataList', items: found.map(toMetadata) }
  },

  async getManifestDigestCount(call, { parentId }) {
    const count = BigInt(await countManifests(call, parentId))
    return { $typeName: 'pinfold.platform.registry.ManifestDigestCount', count }
  },
}

/** Of a document that was not pushed there is nothing but the packages. */
function toSbom({ image, document, graph }: Sbom): Sbom2 {
  const { format, name, tool, authors, packages, files, edges } = graph
  const created = parseTimestamp(graph.created)
  const nodes = [
    ...packages.map((value) => ({
      case: 'package' as const,
      value: { $typeName: 'pinfold.platform.tenant.Package2' as const, ...value },
    })),
    ...files.map((value) => ({
      case: 'file' as const,
      value: { $typeName: 'pinfold.platform.tenant.File2' as const, ...value },
    })),
  ]
  return {
    $typeName: 'pinfold.platform.tenant.Sbom2',
    id: image,
    rawSbom: Uint8Array.from(document?.bytes ?? []),
    graph: {
      $typeName: 'pinfold.platform.tenant.ComponentGraph',
      nodes: nodes.map((typedNode) => ({ $typeName: 'pinfold.platform.tenant.ComponentGraph.Node', typedNode })),
      edges: edges.map(({ subject, predicate, type }) => ({
        $typeName: 'pinfold.platform.tenant.ComponentGraph.Edge',
        subjectId: subject,
        predicateId: predicate,
        type: ComponentGraph_Edge_Type[type],
      })),
    },
    tool,
    format,
    ...(created ? { generatedAt: timestamp(toIso(created)) } : {}),
    authors,
    source: document ? Sbom2_Source.INGESTED : Sbom2_Source.GENERATED,
    name,
    description: '',
    ...(document ? { digest: document.digest } : {}),
  }
}

function toMetadata({ digest, packages }: ImagePackages): ManifestMetadata {
  return {
    $typeName: 'pinfold.platform.registry.ManifestMetadata',
    digest,
    pkgMetadata: packages.map(({ purl, originPurl }) => {
      return { $typeName: 'pinfold.platform.registry.PkgMetadata', purl, originPurl, license: '' }
    }),
  }
}

/** A map whose keys say it all. */
function keyedBy<N extends string>(keys: readonly string[], $typeName: N): Record<string, { $typeName: N }> {
  return Object.fromEntries(keys.map((key) => [key, { $typeName }]))
}
