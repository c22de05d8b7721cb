// Messages between the server and the process that reads images.
import type { ImageContents, UnreadableReason } from './packages.ts'
import type { ScanReport } from './reports/scan-report.ts'
import type { Signed } from './reports/signed.ts'
import type { SbomContents } from './sbom.ts'

/**
 * Layers of one image, one SBOM, one scan report, or a question for the keys that have signed one. Their bytes are requested
 * piece by piece.
 */
export type Question =
  | { layers: number }
  | { sbom: true }
  | { report: true }
  | { signedBy: readonly string[]; verifiedBytes: number }
export type Piece = { bytes: Uint8Array } | { end: true }
export type ToReader = { question: Question } | { piece: Piece }

/** Contents are undefined if the layers have no package databases or package files, or if the document is no SBOM. */
export type Answer =
  | { contents: ImageContents | undefined }
  | { sbom: SbomContents | undefined }
  | { report: ScanReport }
  | { signed: Signed }
  | { reason: UnreadableReason; message: string }
  /** A mistake of ours. */
  | { failure: string }
/** `wanted` is the number of a layer, and 0 for an SBOM or a report. */
export type FromReader = { answer: Answer } | { wanted: number }

/** The largest SBOM, and the largest report, that is read. */
export const maxSbomBytes = 32 * 2 ** 20
