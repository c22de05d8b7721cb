import type { Handlers } from '#app.ts'
import type {
  ImagePackage,
  ScannedImagesService,
  VulnerableImage as VulnerableMessage,
  ImageWithPackage as WithPackageMessage,
} from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { toCoverage, toGap } from '../reports/coverage.control.ts'
import { type ComparedVulnerability, compareImages } from './compare-images.service.ts'
import { listImagePackages, type ShownPackage } from './image-packages.service.ts'
import { imageFields, packageFields } from './images.model.ts'
import { type ImageWithPackage, listImagesWithPackage } from './images-with-package.service.ts'
import { listVulnerableImages, type VulnerableImage } from './vulnerable-images.service.ts'

const imageRules = { fields: imageFields, defaultOrder: 'list' }
const packageRules = { fields: packageFields, defaultOrder: 'number' }

export const scannedImages: Handlers<typeof ScannedImagesService> = {
  async listVulnerableImages(call, request) {
    const { vulnerability, scopeUid } = request
    const page = readPage(call, request, imageRules, [vulnerability, scopeUid])
    const found = await listVulnerableImages(call, page, vulnerability, scopeUid)
    const response = 'pinfold.control.scanning.v1.ListVulnerableImagesResponse'
    return {
      ...listResponse(response, 'images', found, vulnerableMessage, request),
      ...unknownOf(found),
      ...(found.coverage && { coverage: toCoverage(found.coverage) }),
      gaps: found.gaps.map(toGap),
    }
  },

  async listImagesWithPackage(call, request) {
    const { name, ecosystem, version, versionRange, purl, scopeUid } = request
    const query = { name, ecosystem, version, versionRange, purl, scope: scopeUid }
    const page = readPage(call, request, imageRules, query)
    const found = await listImagesWithPackage(call, page, query)
    const response = 'pinfold.control.scanning.v1.ListImagesWithPackageResponse'
    return { ...listResponse(response, 'images', found, withPackageMessage, request), ...unknownOf(found) }
  },

  async listImagePackages(call, request) {
    const { repoUid, digest } = request
    const page = readPage(call, request, packageRules, [repoUid, digest])
    const found = await listImagePackages(call, page, repoUid, digest)
    const response = 'pinfold.control.scanning.v1.ListImagePackagesResponse'
    return { ...listResponse(response, 'packages', found, toMessage, request), gaps: found.gaps.map(toGap) }
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

const unknownOf = ({ unknown, moreUnknown }: { unknown: number; moreUnknown: boolean }) => {
  return { unknownImages: unknown, moreUnknownImages: moreUnknown }
}

function vulnerableMessage(image: VulnerableImage): VulnerableMessage {
  return { $typeName: 'pinfold.control.scanning.v1.VulnerableImage', ...image }
}

function withPackageMessage({ packages, ...image }: ImageWithPackage): WithPackageMessage {
  const $typeName = 'pinfold.control.scanning.v1.ImageWithPackage'
  return { $typeName, ...image, packages: packages.map(toMessage) }
}

function toMessage({ kind: _, ...shown }: ShownPackage): ImagePackage {
  return { $typeName: 'pinfold.control.scanning.v1.ImagePackage', ...shown }
}

const toVulnerability = (one: ComparedVulnerability) => ({
  $typeName: 'pinfold.control.scanning.v1.ComparedVulnerability' as const,
  ...one,
})
