// VEX statement in a form that is the same for all formats: the status of a vulnerability in some products.

export const vexStatuses = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const
/** True if an in-toto predicate of this type can contain VEX statements. */
export const isVexType = (predicateType: string): boolean =>
  /^https:\/\/(?:openvex\.dev\/ns|cyclonedx\.org\/(?:bom|schema|vex)|docs\.oasis-open\.org\/csaf)\b/.test(predicateType)

export type VexStatus = (typeof vexStatuses)[number]

/**
 * Statement about one vulnerability. `products` has package URLs or other names of the products. For each of them, `within` has
 * the product that contains it, or an empty text.
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
