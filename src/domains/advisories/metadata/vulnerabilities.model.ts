import type { Fields } from '#lib/fields.ts'

/** Metadata of a vulnerability, which does not depend on any image. */
export type Vulnerability = {
  id: string
  /** IDs of the same vulnerability in other databases. */
  aliases: string[]
  summary: string
  details: string
  references: Reference[]
  severities: Severity[]
  /** Empty if the time is unknown. */
  publishTime: string
  modifyTime: string
}

export const vulnerabilityType = 'vulnerabilities.pinfold.dev/Vulnerability'

/** `type` is a number of the enum Reference.Type in the API. */
export type Reference = { type: number; url: string }
/** `type` is a number of the enum Severity.Type in the API. Advisories use the same enum. */
export type Severity = { type: number; score: string }

const line = /^[^\p{Cc}]*$/u
const prose = /^(?:[^\p{Cc}]|[\t\r\n])*$/u

export const vulnerabilityFields = {
  id: { column: 'id', sort: true, required: true, pattern: /^[\x21-\x7e]{1,128}$/ },
  aliases: { column: 'aliases', pattern: /^[\x21-\x7e]{1,128}$/ },
  summary: { column: 'summary', pattern: line, maxLength: 1024 },
  details: { column: 'details', pattern: prose, maxLength: 256 * 1024 },
} as const satisfies Fields<Vulnerability>

export const referenceFields = {
  url: { column: 'url', required: true, pattern: /^[^\p{Cc}\s]*$/u, maxLength: 2048 },
} as const satisfies Fields<Reference>

export const severityFields = {
  score: { column: 'score', required: true, pattern: /^[\x21-\x7e]*$/, maxLength: 256 },
} as const satisfies Fields<Severity>

/** Limit on the references, aliases or severities of one vulnerability. */
export const maxListed = 1000
