import type { Handlers } from '#app.ts'
import type { ImagePackage, ScannedImagesService } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { readPage } from '#lib/lists/paging.ts'
import { toCoverage, toGap } from '../reports/coverage.control.ts'
import { type ComparedVulnerability, compareImages } from './compare-images.service.ts'
import { listImagePackages } from './image-packages.service.ts'
import { imageFields, packageFields } from './images.model.ts'
import { listImagesWithPackage } from './images-with-package.service.ts'
import type { ShownPackage } from './shown-package.service.ts'
import { listVulnerableImages } from './vulnerable-images.service.ts'

const imageRules = { fields: imageFields, defaultOrder: 'list' }
const packageRules = { fields: packageFields, defaultOrder: 'number' }

type Paged = { pageSize: number; pageToken: string }
const paging = ({ pageSize, pageToken }: Paged) => ({ pageSize, pageToken, orderBy: '', skip: 0 })

export const scannedImages: Handlers<typeof ScannedImagesService> = {
  async listVulnerableImages(call, request) {
    const { vulnerability, scopeUid } = request
    const page = readPage(call, paging(request), imageRules, [vulnerability, scopeUid])
    const found = await listVulnerableImages(call, page, vulnerability, scopeUid)
    const { images, next, unknown, moreUnknown, coverage, gaps } = found
    return {
      $typeName: 'pinfold.control.scanning.v1.ListVulnerableImagesResponse',
      images: images.map((image) => ({ $typeName: 'pinfold.control.scanning.v1.VulnerableImage', ...image })),
      nextPageToken: next,
      unknownImages: unknown,
      moreUnknownImages: moreUnknown,
      ...(coverage && { coverage: toCoverage(coverage) }),
      gaps: gaps.map(toGap),
    }
  },

  async listImagesWithPackage(call, request) {
    const { name, ecosystem, version, versionRange, purl, scopeUid } = request
    const query = { name, ecosystem, version, versionRange, purl, scope: scopeUid }
    const page = readPage(call, paging(request), imageRules, query)
    const { images, next, unknown, moreUnknown } = await listImagesWithPackage(call, page, query)
    return {
      $typeName: 'pinfold.control.scanning.v1.ListImagesWithPackageResponse',
      images: images.map(({ packages, ...image }) => ({
        $typeName: 'pinfold.control.scanning.v1.ImageWithPackage',
        ...image,
        packages: packages.map(toMessage),
      })),
      nextPageToken: next,
      unknownImages: unknown,
      moreUnknownImages: moreUnknown,
    }
  },

  async listImagePackages(call, request) {
    const { repoUid, digest } = request
    const page = readPage(call, paging(request), packageRules, [repoUid, digest])
    const { packages, next, gaps } = await listImagePackages(call, page, repoUid, digest)
    return {
      $typeName: 'pinfold.control.scanning.v1.ListImagePackagesResponse',
      packages: packages.map(toMessage),
      nextPageToken: next,
      gaps: gaps.map(toGap),
    }
  },

  async compareImages(call, { repoUid, digest, baseDigest, baseRepoUid }) {
    const base = { repoUid: baseRepoUid, digest: baseDigest }
    const compared = await compareImages(call, { repoUid, digest }, base)
    return {
      $typeName: 'pinfold.control.scanning.v1.ImageComparison',
      digest,
      baseDigest,
      added: compared.added.map(toMessage),
      removed: compared.removed.map(toMessage),
      changed: compared.changed.map(({ package: one, baseVersion }) => ({
        $typeName: 'pinfold.control.scanning.v1.ChangedPackage',
        package: toMessage(one),
        baseVersion,
      })),
      found: compared.found.map(toVulnerability),
      resolved: compared.resolved.map(toVulnerability),
      unknown: compared.unknown.map(toVulnerability),
      gaps: compared.gaps.map(toGap),
      baseGaps: compared.baseGaps.map(toGap),
      coverage: toCoverage(compared.coverage),
      baseCoverage: toCoverage(compared.baseCoverage),
    }
  },
}

function toMessage({ kind: _, ...shown }: ShownPackage): ImagePackage {
  return { $typeName: 'pinfold.control.scanning.v1.ImagePackage', ...shown }
}

const toVulnerability = (one: ComparedVulnerability) => ({
  $typeName: 'pinfold.control.scanning.v1.ComparedVulnerability' as const,
  ...one,
})
