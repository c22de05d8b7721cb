// VEX statement in any format: the status of a vulnerability in some products.

export const vexStatuses = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const
/** True if the type of an in-toto predicate is a document that may have VEX statements. */
export const isVexType = (predicateType: string): boolean =>
  /^https:\/\/(?:openvex\.dev\/ns|cyclonedx\.org\/(?:bom|schema|vex)|docs\.oasis-open\.org\/csaf)\b/.test(predicateType)

export type VexStatus = (typeof vexStatuses)[number]

/**
 * Statement about one vulnerability. `products` has package URLs or other names of the products. `within` has, for each of them,
 * the product that it is a part of, or an empty text.
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
