// Messages between the server and the process that reads images.
import type { ImageContents, UnreadableReason } from './packages.ts'
import type { ScanReport } from './reports/scan-report.ts'
import type { Signed } from './reports/signed.ts'
import type { SbomContents } from './sbom.ts'

/** The layers of one image, one SBOM, one report of a scanner, or which keys have signed one. Their bytes are asked for piece by piece. */
export type Question =
  | { layers: number }
  | { sbom: true }
  | { report: true }
  | { signedBy: readonly string[]; verifiedBytes: number }
export type Piece = { bytes: Uint8Array } | { end: true }
export type ToReader = { question: Question } | { piece: Piece }

/** Undefined contents: nothing in the layers says what is installed, or the document is no SBOM. */
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
