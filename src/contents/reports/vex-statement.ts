// VEX statement in any format: the status of a vulnerability in some products.

export const vexStatuses = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const
/** True if the type of an in-toto predicate is a document that may have VEX statements. */
export const isVexType = (predicateType: string): boolean =>
  /^https:\/\/(?:openvex\.dev\/ns|cyclonedx\.org\/(?:bom|schema|vex)|docs\.oasis-open\.org\/csaf)\b/.test(predicateType)

export type VexStatus = (typeof vexStatuses)[number]

/**
 * One thing that is said of one vulnerability; `products` are package URLs, or what else names what it is said of. `within` has
 * for each of which product it is a part, empty for what is none.
 */
export type VexStatement = {
  vulnerability: string
  aliases: string[]
  status: VexStatus
  justification: string
  text: string
  products: string[]
  within?: string[]
}
