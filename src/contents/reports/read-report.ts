// Reads the report of a scanner in any supported format. The report can be in an in-toto statement.
import { asObject, type Json, parseJson, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
import { isCsaf, readCsaf } from './csaf.ts'
import { isCycloneDx, readCycloneDx } from './cyclone-dx.ts'
import {
  countSignatures,
  type Envelope,
  envelopeIn,
  isInToto,
  maxSignedBytes,
  signersOf,
  subjectsOf,
} from './envelope.ts'
import { isGrype, readGrype } from './grype.ts'
import { isHarbor, readHarbor } from './harbor.ts'
import { isSarif, readSarif } from './sarif.ts'
import type { ScanReport } from './scan-report.ts'
import { type Signed, unsigned } from './signed.ts'
import { isTrivy, readTrivy } from './trivy.ts'
import { isOpenVex, readOpenVex } from './vex.ts'
import { isVexType } from './vex-statement.ts'

/** Limit on the JSON values of a report, which also limits the memory for parsing. Real reports have fewer values. */
const maxValues = 2_000_000

/** Reads a scan report. Throws Unreadable if no supported format matches the bytes. */
export function readScanReport(bytes: Uint8Array): ScanReport {
  const document = parseJson(bytes, maxValues, 'report')
  const envelope = envelopeIn(document)
  const statement = envelope ? parseJson(envelope.payload, maxValues, 'statement') : document
  if (envelope && !isInToto(statement))
    throw new Unreadable('DAMAGED', 'the envelope does not contain an in-toto statement')
  const report = reportIn(isInToto(statement) ? asObject(statement.predicate) : statement)
  const { name, version } = report.tool
  return {
    ...report,
    tool: { name: toPlainText(name), version: toPlainText(version) },
    ...(isInToto(statement) && { subjects: subjectsOf(statement), sealed: envelope !== undefined }),
    ...(envelope && report.statements && signaturesIn(envelope, statement)),
  }
}

/** Removes unusual characters, because the name of a tool comes from the document. */
const toPlainText = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 128)

/**
 * Signatures of a VEX document. For other predicates, signatures do not matter, because their signer has made no VEX statement.
 */
function signaturesIn(envelope: Envelope, statement: Json): Pick<ScanReport, 'signatures' | 'note'> {
  const all = envelope.signatures.length
  if (!isVexType(textOf(statement.predicateType))) {
    return {
      signatures: 0,
      ...(all > 0 && { note: 'the signatures do not count, because the predicate does not have a VEX type' }),
    }
  }
  const signatures = countSignatures(envelope)
  const isUnseen = signatures < all
  return {
    signatures,
    ...(isUnseen && { note: `the signatures do not count, because the payload has more than ${maxSignedBytes} bytes` }),
  }
}

/**
 * Finds the signers of a report. `keys` are in PEM, and the result contains positions in `keys`. Throws Unreadable like
 * `readScanReport`, and if verifying would hash more than `verifiedBytes` bytes.
 */
export function readSigners(bytes: Uint8Array, keys: readonly string[], verifiedBytes: number): Signed {
  const envelope = envelopeIn(parseJson(bytes, maxValues, 'report'))
  if (!envelope) return unsigned
  const statement = parseJson(envelope.payload, maxValues, 'statement')
  if (!isInToto(statement)) throw new Unreadable('DAMAGED', 'the envelope does not contain an in-toto statement')
  const { signatures = 0 } = signaturesIn(envelope, statement)
  const signers = signatures === 0 ? [] : signersOf(envelope, keys, verifiedBytes)
  if (signers.length === 0) return { ...unsigned, signatures }
  const report = reportIn(asObject(statement.predicate))
  return {
    ...{ signatures, signers, subjects: subjectsOf(statement), author: toPlainText(report.tool.name) },
    statementTime: report.writeTime ?? report.dbBuildTime,
    statements: report.statements ?? [],
  }
}

function reportIn(document: Json): ScanReport {
  if (isTrivy(document)) return readTrivy(document)
  if (isGrype(document)) return readGrype(document)
  if (isCycloneDx(document)) return readCycloneDx(document)
  if (isSarif(document)) return readSarif(document)
  if (isHarbor(document)) return readHarbor(document)
  if (isOpenVex(document)) return readOpenVex(document)
  if (isCsaf(document)) return readCsaf(document)
  const scan = cosignScanIn(document)
  if (scan) return scan
  const known = 'JSON of Grype, Trivy or Harbor, CycloneDX with vulnerabilities, SARIF 2.1.0, OpenVEX and CSAF VEX'
  throw new Unreadable('UNSUPPORTED', `the format of the report is not supported; supported are ${known}`)
}

/** Report in the scan record of cosign, which adds data about the scanner. */
function cosignScanIn({ scanner }: Json): ScanReport | undefined {
  const { result, version, db } = asObject(scanner)
  const inner = asObject(result)
  const built = textOf(asObject(db).lastUpdate) || textOf(asObject(db).version)
  return isTrivy(inner) ? readTrivy(inner, { version: textOf(version).replace(/^v/, ''), built }) : undefined
}
