// Writes the findings of an image as OpenVEX 0.2.0, https://github.com/openvex/spec.
import { AppError } from '#lib/errors.ts'
import { uuidOf } from '../reports/cyclone-dx.service.ts'
import { actionOf, gapText, hashOf, type StatedImage, type StatedStatus, type Statement } from './exports.model.ts'

const mostGaps = 100

/**
 * Throws FAILED_PRECONDITION if there are no findings. OpenVEX requires at least one statement, and cannot express coverage gaps.
 */
export function toOpenVex(image: StatedImage): object {
  const { digest, path, author, time, tool, statements, gaps } = image
  const made = `${tool.name} ${tool.version}`
  if (statements.length === 0) {
    const known =
      gaps.length === 0
        ? 'the image has no findings'
        : `the image has no findings, but was not scanned completely: ${listGaps(image)}`
    throw new AppError(
      'FAILED_PRECONDITION',
      `No document was exported, because an OpenVEX document needs a statement and ${known}`,
      {
        details: [
          {
            type: 'PreconditionFailure',
            violations: [
              { type: 'NOTHING_TO_STATE', subject: digest, description: 'use another format, such as cyclonedx' },
            ],
          },
        ],
      },
    )
  }
  return {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `urn:uuid:${uuidOf(JSON.stringify([digest, path, time]))}`,
    author,
    timestamp: time,
    version: 1,
    // OpenVEX has no other field for coverage gaps.
    tooling: gaps.length === 0 ? made : `${made}. The image was not scanned completely: ${listGaps(image)}`,
    statements: statements.map((one) => statementOf(one, image)),
  }
}

const listGaps = ({ gaps }: StatedImage): string =>
  [...gaps.slice(0, mostGaps).map(gapText), ...(gaps.length > mostGaps ? ['and others'] : [])].join('; ')

const statuses: Readonly<Record<StatedStatus, string>> = {
  affected: 'affected',
  uncertain: 'under_investigation',
  accepted: 'affected',
  suppressed: 'not_affected',
}

function statementOf(one: Statement, { purl, digest }: StatedImage): object {
  const { vulnerability, aliases, status, note, since, packages } = one
  const { algorithm, digits } = hashOf(digest)
  return {
    vulnerability: { name: vulnerability, ...(aliases.length > 0 ? { aliases } : {}) },
    timestamp: since,
    products: [
      {
        '@id': purl,
        identifiers: { purl },
        hashes: { [algorithm === 'sha512' ? 'sha-512' : 'sha-256']: digits },
        subcomponents: packages.map(({ purl: of }) => ({ '@id': of, identifiers: { purl: of } })),
      },
    ],
    status: statuses[status],
    ...(status === 'uncertain' ? { status_notes: note } : {}),
    ...(status === 'suppressed' ? { impact_statement: note } : {}),
    ...(statuses[status] === 'affected' ? { action_statement: actionOf(one) } : {}),
  }
}
