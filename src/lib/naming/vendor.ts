// Names of another product in place of ours, so that clients of that product work unchanged. One token replaces ours in packages,
// event types, members, headers and paths.

/** Names of the other product. */
export type Vendor = {
  /** Token that replaces `pinfold`. */
  token: string
  /** Domain that replaces `pinfold.dev`. */
  domain: string
}

/** Packages that the other product does not have. Annotations describe methods and are not part of a call. */
const ownPackages = 'control|annotations'
const ownType = new RegExp(`^pinfold\\.(?!(?:${ownPackages})\\.)`)
const ownEvent = new RegExp(`^dev\\.pinfold\\.(?!(?:${ownPackages})\\.)`)

/** Full name of a message, service or package, such as `pinfold.platform.iam.v2.Group`, with the vendor's token. */
export function vendorTypeName(typeName: string, token: string): string {
  return typeName.replace(ownType, `${token}.`)
}

/** Event type with the vendor's names. */
export function vendorEventType(type: string, token: string): string {
  return type.replace(ownEvent, `dev.${token}.`)
}

/** Resource type in an error, such as `iam.pinfold.dev/Group`, with the vendor's domain. */
export function vendorResourceType(type: string, { domain }: Vendor): string {
  return type.replace(/\.pinfold\.dev\//, `.${domain}/`)
}

/** Field path, such as `account_association.pinfold.service_bindings`, with the vendor's token. */
export function vendorField(field: string, token: string): string {
  return field.replace(/(?<=^|\.)pinfold(?=\.|$)/, token)
}
