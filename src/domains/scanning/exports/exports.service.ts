// Exports the findings of an image as a document in one of the formats.
import type { Call } from '#app.ts'
import { AppError, invalid } from '#lib/errors.ts'
import { type Gap, maxRaw } from '../image-findings/reports.model.ts'
import type { ResultCoverage } from '../reports/result-coverage.model.ts'
import { toCycloneDx } from './exported-cyclone-dx.service.ts'
import { toOpenVex } from './exported-openvex.service.ts'
import { toSarif } from './exported-sarif.service.ts'
import { type ExportFormat, exportFormats, type StatedImage } from './exports.model.ts'
import { statedImage } from './stated-image.service.ts'

export type ExportedFindings = {
  digest: string
  format: string
  mediaType: string
  document: string
  gaps: readonly Gap[]
  coverage: ResultCoverage
}

const writers: Readonly<Record<ExportFormat, (image: StatedImage) => object>> = {
  cyclonedx: toCycloneDx,
  openvex: toOpenVex,
  sarif: toSarif,
}

/** Exports the findings of an image. Throws RESOURCE_EXHAUSTED if the document exceeds the size limit of an answer. */
export async function exportFindings(
  call: Call,
  repoUid: string,
  digest: string,
  named: string,
): Promise<ExportedFindings> {
  const formats = Object.keys(exportFormats) as ExportFormat[]
  const format = formats.find((one) => one === named)
  if (!format) throw invalid({ field: 'format', description: `must be one of ${formats.join(', ')}` })
  const image = await statedImage(call, repoUid, digest)
  const document = JSON.stringify(writers[format](image))
  if (document.length > maxRaw) {
    throw new AppError(
      'RESOURCE_EXHAUSTED',
      `the document was not exported, because it is longer than ${maxRaw} characters`,
      {
        reason: 'LIST_TOO_LONG',
      },
    )
  }
  return { digest, format, mediaType: exportFormats[format], document, gaps: image.gaps, coverage: image.coverage }
}
