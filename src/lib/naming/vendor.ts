// Names of another product that replace ours, for its clients that are to work here unchanged. One token replaces ours
// everywhere: in packages, event types, members, headers and paths.

/** Names of the other product. */
export type Vendor = {
  /** Replaces `pinfold`. */
  token: string
  /** Replaces `pinfold.dev`. */
  domain: string
}

/** Packages that have no equivalent in the other product. Annotations describe methods and are not part of a call. */
const ownPackages = 'control|annotations'
const ownType = new RegExp(`^pinfold\\.(?!(?:${ownPackages})\\.)`)
const ownEvent = new RegExp(`^dev\\.pinfold\\.(?!(?:${ownPackages})\\.)`)

/** The full name of a message, a service or a package: `pinfold.platform.iam.v2.Group`. */
export function vendorTypeName(typeName: string, token: string): string {
  return typeName.replace(ownType, `${token}.`)
}

/** The type of an event. */
export function vendorEventType(type: string, token: string): string {
  return type.replace(ownEvent, `dev.${token}.`)
}

/** The type of a resource in an error: `iam.pinfold.dev/Group`. */
export function vendorResourceType(type: string, { domain }: Vendor): string {
  return type.replace(/\.pinfold\.dev\//, `.${domain}/`)
}

/** The names of members in the path of a field: `account_association.pinfold.service_bindings`. */
export function vendorField(field: string, token: string): string {
  return field.replace(/(?<=^|\.)pinfold(?=\.|$)/, token)
}
