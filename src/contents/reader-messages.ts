// Messages between the server and the process that reads image contents.
import type { ImageContents, UnreadableReason } from './packages.ts'
import type { ScanReport } from './reports/scan-report.ts'
import type { Signed } from './reports/signed.ts'
import type { SbomContents } from './sbom.ts'

/**
 * Request to read the layers of one image, one SBOM or one scan report, or to find the keys that signed a report. The reader then
 * requests the bytes piece by piece.
 */
export type Question =
  | { layers: number }
  | { sbom: true }
  | { report: true }
  | { signedBy: readonly string[]; verifiedBytes: number }
export type Piece = { bytes: Uint8Array } | { end: true }
export type ToReader = { question: Question } | { piece: Piece }

/**
 * Result of a request. The contents are undefined if the layers have no package databases or package files, or if the document is
 * no SBOM.
 */
export type Answer =
  | { contents: ImageContents | undefined }
  | { sbom: SbomContents | undefined }
  | { report: ScanReport }
  | { signed: Signed }
  | { reason: UnreadableReason; message: string }
  /** A bug in our code. */
  | { failure: string }
/**
 * Message of the reader. `wanted` is the number of a layer whose next piece is requested. The number is 0 for an SBOM or a
 * report.
 */
export type FromReader = { answer: Answer } | { wanted: number }

/** Size limits of an SBOM and of a report, in bytes. */
export const maxSbomBytes = 32 * 2 ** 20
